#!/usr/bin/env bash
# rootfs.sh DIRECTORY PROGRAM...: makes a root file system of these programs and what
# they load: shared libraries, roots of certificates, terminals and characters (for
# timecachectl shell), the user who runs them, and that user's directory for a journal.
# Nothing else is in it, no shell and no package manager. For scanners it has what dpkg
# says of the packages that the files come from, and their licences.
set -euo pipefail

readonly root=$1
shift
readonly user=65532

mkdir -p "$root"/{etc/ssl/certs,usr/local/bin,var/lib/dpkg/status.d,usr/share/doc}
install -m 0755 "$@" "$root/usr/local/bin/"

# "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", and the loader itself,
# "/lib64/ld-linux-x86-64.so.2 (0x...)".
mapfile -t libraries < <(ldd "$@" |
  awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// && $2 ~ /^\(/ {print $1}' | sort -u)
((${#libraries[@]} > 0))

readonly characters=/usr/lib/locale/C.utf8/LC_CTYPE
files=("${libraries[@]}" /etc/ssl/openssl.cnf /etc/ssl/certs/ca-certificates.crt
  /lib/terminfo/*/* "$characters")
for file in "${files[@]}"; do
  mkdir -p "$root$(dirname "$file")"
  install -m "$(stat -Lc %a "$file")" "$file" "$root$file"
done

# package_of FILE: dpkg knows a file by the path before or after /usr was merged.
package_of() {
  local path
  for path in "$1" "$(readlink -f "$1")" "/usr$1"; do
    dpkg-query --search "$path" 2>/dev/null | head -n 1 | cut -d : -f 1 | grep . && return
  done
  return 1
}

for file in "${libraries[@]}" /etc/ssl/openssl.cnf /usr/sbin/update-ca-certificates \
  /lib/terminfo/x/xterm "$characters"; do
  package_of "$file"
done | sort -u | while read -r package; do
  dpkg-query --status "$package" >"$root/var/lib/dpkg/status.d/$package"
  install -D -m 0644 "/usr/share/doc/$package/copyright" \
    "$root/usr/share/doc/$package/copyright"
done

printf 'root:x:0:0:root:/:/sbin/nologin\ntimecached:x:%d:%d:timecached:/:/sbin/nologin\n' \
  "$user" "$user" >"$root/etc/passwd"
printf 'root:x:0:\ntimecached:x:%d:\n' "$user" >"$root/etc/group"
# A named volume that is mounted here gets the owner of it.
install -d -m 0700 -o "$user" -g "$user" "$root/var/lib/timecached"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
cp /etc/os-release "$root/etc/os-release"
