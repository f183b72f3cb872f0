# Written by the programs once they are linked; `cmake --install` puts them, with
# all else that a machine needs to run timecached, where Linux looks for it.
set(pages ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${pages}/timecached.8
  COMMAND timecached --man > ${pages}/timecached.8 DEPENDS timecached VERBATIM)
add_custom_command(OUTPUT ${pages}/timecachectl.1
  COMMAND timecachectl __man > ${pages}/timecachectl.1 DEPENDS timecachectl VERBATIM)
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${pages}/completion.${shell}
    COMMAND timecachectl completion ${shell} > ${pages}/completion.${shell}
    DEPENDS timecachectl VERBATIM)
endforeach()
add_custom_target(manual ALL DEPENDS
  ${pages}/timecached.8 ${pages}/timecachectl.1
  ${pages}/completion.bash ${pages}/completion.zsh ${pages}/completion.fish)

include(GNUInstallDirs)
install(TARGETS timecached DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS timecachectl DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${pages}/timecached.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES ${pages}/timecachectl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
set(share ${CMAKE_INSTALL_DATAROOTDIR})
install(FILES ${pages}/completion.bash RENAME timecachectl
  DESTINATION ${share}/bash-completion/completions)
install(FILES ${pages}/completion.zsh RENAME _timecachectl
  DESTINATION ${share}/zsh/site-functions)
install(FILES ${pages}/completion.fish RENAME timecachectl.fish
  DESTINATION ${share}/fish/vendor_completions.d)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/timecached.service
  DESTINATION lib/systemd/system)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/timecached.yaml
  DESTINATION ${share}/doc/timecached)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE RENAME copyright
  DESTINATION ${share}/doc/timecached)
