# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   awk -f abi_old_part.awk <kept.abi> <stub.c>
#
# The stub without what may be added within one soname: functions, types and enumerators that the kept file does not
# have, and members behind the last one of a struct that begins with struct_size. A member that was put between others
# stays, and an old one falls off the end.

FNR == NR {
    if (match($0, / name='[^']*'/)) {
        name = substr($0, RSTART + 7, RLENGTH - 8)
        if (/<(elf-symbol|class-decl|union-decl|enum-decl|typedef-decl|enumerator) /) known[name] = 1
    }
    if (/<class-decl /) struct = name
    if (/<data-member /) members[struct]++
    next
}

is_new { is_new = !/^}/; next }

is_versioned {
    if (/^}/) is_versioned = 0
    else if (++count > members[struct]) next
    print
    next
}

/^typedef / {
    name = $0
    if (/[{]/) name = $3
    else if (match(name, /\(\*[A-Za-z0-9_]+\)/)) name = substr(name, RSTART + 2, RLENGTH - 3)
    else { sub(/;$/, "", name); sub(/.*[ *]/, "", name) }
    # One without a name before its members is taken for an old one.
    if (name != "{" && !(name in known)) { is_new = /^typedef (struct|union) [^{]*[{]/; next }
}

/^typedef struct [a-z0-9_]+ [{] size_t struct_size;$/ { is_versioned = 1; struct = $3; count = 1 }

/^typedef enum / {
    rest = $0
    while (match(rest, /WEIR_[A-Z0-9_]* = [^,}]*,?/)) {
        item = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        name = item
        sub(/ .*/, "", name)
        if (!(name in known)) $0 = substr($0, 1, index($0, item) - 1) substr($0, index($0, item) + length(item))
    }
}

/[ *]weir_[a-z0-9_]+\([^()]*\) [{]/ {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    if (!(name in known)) next
}

{ print }
