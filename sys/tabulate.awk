# Reads src/bindings.rs and lists what the layout test compares with C: every struct with its fields, every constant.
# A field inside a nested type without a name of its own is listed by its path, `wr.rdma.rkey`.

function fields(type, rust, c,    n, parts, i, field, name, of) {
    n = split(members[type], parts, "\n")
    for (i = 1; i < n; i++) {
        name = parts[i]; of = parts[i]
        sub(/ .*/, "", name); sub(/^[^ ]* /, "", of)
        field = c name
        sub(/_$/, "", field)                      # type_, priv_: Rust's keywords
        if (name ~ /^__bindgen_anon_/) field = c  # C reaches through
        if (of ~ /__bindgen_ty_[0-9]+$/ && of in members) {
            if (name ~ /^__bindgen_anon_/) fields(of, rust name ".", c)
            else { entry(field, rust name); fields(of, rust name ".", field ".") }
        } else entry(field, rust name)
    }
}
function entry(c, rust) { printf "        \"%s\" %s;\n", c, rust }

/^pub (struct|union) / { type = $3; kind[type] = $2; members[type] = ""; order[++types] = type; next }
/^}/ { type = "" }
type != "" && /^    pub / && !/^    pub _(unused|address):/ {
    line = $0
    sub(/^    pub /, "", line); sub(/,$/, "", line)
    name = line; sub(/:.*/, "", name)
    sub(/^[^:]*: ?/, "", line)                    # empty when rustfmt broke the line
    members[type] = members[type] name " " line "\n"
}
/^pub const / { name = $3; sub(/:$/, "", name); constants[++count] = name }
END {
    print "// Made by sys/regenerate from src/bindings.rs. Do not edit.\n"
    print "layouts! {"
    for (t = 1; t <= types; t++) {
        type = order[t]
        if (type ~ /__bindgen_ty_/ || members[type] == "") continue
        printf "    \"%s %s\" %s {\n", kind[type], type, type
        fields(type, "", "")
        print "    }"
    }
    print "}\n\nconstants! {"
    for (i = 1; i <= count; i++) printf "    %s,\n", constants[i]
    print "}"
}
