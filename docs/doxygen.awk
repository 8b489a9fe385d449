# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The pages of docs/ as Doxygen is to read them. They are written for the web pages of a repository, where each heading can be linked to and
# files outside of docs/ are there. Doxygen knows a heading only by a label, one for all pages, and no other files.
#
#   ## A heading         ->  ## A heading {#page-a-heading}
#   [x](#a-heading)      ->  [x](@ref page-a-heading)
#   [x](other.md#some)   ->  [x](@ref other-some)
#   [x](../gpu/y.md)     ->  x (gpu/y.md)
#
# docs/mainpage.md is written for Doxygen and stays as it is. Lines stay where they are.

BEGIN { file = ARGV[1]; sub(/.*\//, "", file); page = file; sub(/\.md$/, "", page) }

page == "mainpage" { print; next }

/^ *```/ { is_code = !is_code }

is_code { print; next }

/^##+ / && !/\{#/ {
    label = tolower($0)
    sub(/^#+ */, "", label)
    gsub(/[^a-z0-9 _-]/, "", label)
    gsub(/ /, "-", label)
    number = seen[label]++
    $0 = $0 " {#" page "-" label (number ? "-" number : "") "}"
}

{
    rest = $0
    line = ""
    while (match(rest, /\]\([^) ]*\)/)) {
        before = substr(rest, 1, RSTART - 1)
        to = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        if (to ~ /^#/)
            to = "@ref " page "-" substr(to, 2)
        else if (to ~ /^[a-z_0-9]+\.md#/) {
            sub(/\.md#/, "-", to)
            to = "@ref " to
        }
        if (to ~ /^\.\.\//) {
            # The opening bracket goes too.
            for (at = length(before); at && substr(before, at, 1) != "["; at--);
            line = line substr(before, 1, at - 1) substr(before, at + 1) " (" substr(to, 4) ")"
        } else
            line = line before "](" to ")"
    }
    print line rest
}
