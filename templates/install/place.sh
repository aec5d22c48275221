#!/bin/sh
# Puts the preloaded library into its directory on a node, or takes away what the pool put there. For any POSIX shell.
#
#   place.sh place    HOOK_PATH: the directory. LIBRARIES: `architecture:sha256` for each SOURCE/<architecture>/
#                     libvgpu.so.gz; without it SOURCE is the library itself
#   place.sh remove   HOOK_PATH, LOCK_PATH: the locks that containers share
#
# A file is written under another name and renamed: who has the old one mapped keeps it whole, and nobody sees half of
# the new one. The last word (the library's sha256, or why there is none) is the container's termination message too.
#
# In a container's arguments Kubernetes replaces a variable's name in brackets after a dollar sign, and makes one of two
# dollar signs: there are none here.
set -u
umask 022
export LC_ALL=C

MOUNTED=/usr/local/vgpu/libvgpu.so # where a container sees the library, whatever HOOK_PATH is
temporary=
trap '[ -z "$temporary" ] || rm -f "$temporary"' EXIT
trap 'exit 1' HUP INT TERM

say() {
    printf '%s\n' "$1"
    [ ! -w "${TERMINATION_LOG:=/dev/termination-log}" ] || printf '%s' "$1" >"$TERMINATION_LOG"
}

# fail WHAT [ERROR]: of the error its first line, without the program's name.
fail() {
    why=$(printf '%s' "${2-}" | sed -n '/./{s/^[^:]*: *//p;q;}')
    say "$1${why:+: $why}"
    exit 1
}

hash_of() {
    sum=$(sha256sum "$1" 2>/dev/null) && printf '%s' "${sum%% *}"
}

# put NAME SHA256 COMMAND...: what the command prints becomes HOOK_PATH/NAME.
put() {
    target=$HOOK_PATH/$1
    wanted=$2
    shift 2
    [ "$(hash_of "$target")" != "$wanted" ] || return 0
    made=$(mktemp "$HOOK_PATH/.vgpuctl.XXXXXX" 2>&1) ||
        fail "cannot write in $HOOK_PATH (where it is read-only, choose another --hook-path)" "$made"
    temporary=$made
    error=$("$@" 2>&1 >"$temporary") || fail "cannot write $target" "$error"
    found=$(hash_of "$temporary")
    [ "$found" = "$wanted" ] || fail "what was to become $target has the sha256 $found, not $wanted"
    error=$(chmod 0644 "$temporary" 2>&1 && sync "$temporary" 2>&1) || fail "cannot write $target" "$error"
    # A container runtime makes a directory of a file that it was to mount and did not find.
    [ ! -d "$target" ] || error=$(rmdir "$target" 2>&1) || fail "$target is a directory: move it away" "$error"
    error=$(mv -f "$temporary" "$target" 2>&1) || fail "cannot replace $target" "$error"
    temporary=
}

place() {
    error=$(mkdir -p "$HOOK_PATH/vgpu/containers" 2>&1) ||
        fail "cannot write in $HOOK_PATH (where it is read-only, choose another --hook-path)" "$error"
    # What those left who were killed. Younger ones may be another's who is at work.
    find "$HOOK_PATH" -maxdepth 1 -name '.vgpuctl.*' -mmin +1 -exec rm -f {} +

    if [ -n "${LIBRARIES-}" ]; then
        machine=$(uname -m)
        library=
        for pair in $LIBRARIES; do
            [ "${pair%%:*}" != "$machine" ] || library=${pair#*:}
        done
        [ -n "$library" ] || fail "there is no library for $machine, only $LIBRARIES"
        packed=$SOURCE/$machine/libvgpu.so.gz
        [ -r "$packed" ] || fail "there is no $packed"
        put libvgpu.so "$library" gunzip -c "$packed"
    else
        library=$(hash_of "$SOURCE") || fail "there is no library $SOURCE in this image"
        put libvgpu.so "$library" cat "$SOURCE"
    fi
    preload=$(printf '%s\n' "$MOUNTED" | sha256sum)
    put ld.so.preload "${preload%% *}" printf '%s\n' "$MOUNTED"
    say "$library"
}

remove() {
    for made in ld.so.preload libvgpu.so vgpu; do
        error=$(rm -rf "$HOOK_PATH/$made" 2>&1) || fail "cannot remove $HOOK_PATH/$made" "$error"
    done
    rm -f "$HOOK_PATH"/.vgpuctl.*
    error=$(rm -rf "$LOCK_PATH" 2>&1) || fail "cannot remove $LOCK_PATH" "$error"
    # Others may keep files there.
    rmdir "$HOOK_PATH" 2>/dev/null
    say removed
}

"$1"
