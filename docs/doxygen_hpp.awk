# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   awk -f docs/doxygen_hpp.awk include/weir/*_cdef.h <header>
#
# The C++ headers as Doxygen is to read them: each method says which functions of the C interface it calls, because
# those have the contract. A comment gets a list of them; where there is no comment the list is one. Lines stay where
# they are.

FILENAME ~ /_cdef\.h$/ {
    if (match($0, /weir_[a-z0-9_]+\(/)) functions[substr($0, RSTART, RLENGTH - 1)] = 1
    next
}

# All operators at once: their macro as the template that it stands for.
/^#define WEIR_OPERATOR\(/ { $0 = "    template <class Desc>"; is_macro = 1 }
is_macro { sub(/ *\\$/, ""); sub(/weir_##name##_desc/, "Desc") }
is_macro && /^    }$/ { is_macro = 0 }
/^    WEIR_OPERATORS\(/ || /^#undef WEIR_OPERATOR$/ { $0 = "" }
# Constructors are described where they are inherited from.
/^    using (shared::shared|owned::owned|owned<Raw>::owned|resource::resource);$/ { $0 = "" }

{ line[++count] = $0 }

END {
    for (i = 1; i <= count; i++) {
        if (line[i] ~ /^ *\/\/\//) { described = i; continue }
        if (line[i] ~ /^ *template </) {
            if (!first) first = i
            continue
        }
        if (match(line[i], /^struct [a-z_]+ : weir_[a-z_]+ /)) {
            options = substr(line[i], RSTART, RLENGTH - 1)
            sub(/.* /, "", options)
        }
        if (line[i] ~ /^ *$|^ *\/\/|^#|^ *(using|class|struct|namespace|extern|friend|public:|private:|protected:|})/) {
            described = first = 0
            continue
        }
        if (!first) first = i
        item()
        described = first = 0
    }
    for (i = 1; i <= count; i++) print line[i]
}

# From a declaration's first line to its last one; `i` is that then.
function item(    text, open, calls, told, at) {
    text = ""
    for (;; i++) {
        text = text line[i] "\n"
        open += gsub(/[({]/, "&", line[i]) - gsub(/[)}]/, "&", line[i])
        if (i == count || (open == 0 && line[i] ~ /[;}]$/)) break
    }
    if (!described && match(text, /return [a-z_]+ = /)) {
        at = substr(text, RSTART + 7, RLENGTH - 10)
        if (index(text, "&set_" at "(")) sub(/^ */, "&/** Sets " options "::" at ". */ ", line[first])
        return
    }
    told = ""
    for (at = described; at && line[at] ~ /^ *\/\/\//; at--) told = told line[at] " "
    calls = ""
    while (match(text, /weir_[a-z0-9_]+/)) {
        at = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (!(at in functions) || index(told, at) || index(calls ",", "::" at ",")) continue
        calls = calls (calls ? ", " : "") "::" at
    }
    if (!calls) return
    if (described) line[described] = line[described] " @see " calls
    else sub(/^ */, "&/** As " calls ". */ ", line[first])
}
