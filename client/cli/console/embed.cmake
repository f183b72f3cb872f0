# Writes OUTPUT, a C++ source with the bytes of all files below the directory PAGE.
file(GLOB_RECURSE files RELATIVE ${PAGE} ${PAGE}/*)
list(SORT files)
set(arrays "")
set(table "")
set(number 0)
foreach(file ${files})
  file(READ ${PAGE}/${file} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)"
    "\\1\n" bytes "${bytes}")
  # An array has at least one element.
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {\n${bytes}0};\n")
  string(APPEND table "    {\"/${file}\", Text(kFile${number}, sizeof(kFile${number}) - 1)},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"client/cli/console/static_files.h\"

namespace timecache::cli {
namespace {

${arrays}
std::string_view Text(const unsigned char* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

const std::map<std::string, std::string_view>& StaticFiles() {
  static const auto* const files = new std::map<std::string, std::string_view>{
${table}  };
  return *files;
}

}  // namespace timecache::cli
")
