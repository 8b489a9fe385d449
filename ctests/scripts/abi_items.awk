# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Reads the preprocessed header with a line break after each brace and semicolon, and prints what abi_layout.c and abi_values.h must pin:
# "SIZE(struct", "OFFSET(struct, member" and "VALUE(ENUMERATOR".

/typedef struct weir_[a-z0-9_]+ \{/ {
    match($0, /weir_[a-z0-9_]+/)
    struct = substr($0, RSTART, RLENGTH)
    print "SIZE(" struct
    next
}

/typedef enum weir_[a-z0-9_]+ \{/ {
    in_enum = 1
    next
}

# The whole body of an enum is one line.
in_enum {
    count = split($0, parts, ",")
    for (i = 1; i <= count; i++) {
        if (match(parts[i], /WEIR_[A-Z0-9_]+/)) {
            print "VALUE(" substr(parts[i], RSTART, RLENGTH)
        }
    }
    in_enum = 0
    next
}

/\}/ {
    struct = ""
    next
}

# A member: "int32_t (*name)(...);", "char name[64];" or "size_t name;".
struct != "" {
    if (match($0, /\(\*[a-z0-9_]+\)/)) {
        member = substr($0, RSTART + 2, RLENGTH - 3)
    } else {
        sub(/(\[[^]]*\])? *;.*/, "")
        match($0, /[a-z0-9_]+ *$/)
        member = substr($0, RSTART, RLENGTH)
    }
    print "OFFSET(" struct ", " member
}
