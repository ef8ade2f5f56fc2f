# shellcheck shell=sh
# Fetches packages from the mirrors that this system has, with lists of packages of its own: those of the
# system stay as they are, nothing is installed, and root is not needed.

# debian_open FOLDER: fetches the lists. 0, or 2: the registry does not answer, or this is no Debian.
debian_open()
{
    command -v apt-get >/dev/null 2>&1 || { echo "there is no apt-get"; return 2; }
    debian=$1
    mkdir -p "$debian/lists/partial" "$debian/archives/partial" "$debian/parts" || return 2
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n -e 's/^deb \(.*\)/deb \1\ndeb-src \1/p' | sort -u >"$debian/parts/own.list"
    sed 's/^Types:.*/Types: deb deb-src/' /etc/apt/sources.list.d/*.sources >"$debian/parts/own.sources" 2>/dev/null
    debian_apt update || return 2
}

debian_apt()
{
    timeout 600 apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$debian/parts" \
        -o Dir::State::lists="$debian/lists" -o Dir::Cache::archives="$debian/archives" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 \
        -o APT::Update::Error-Mode=any "$@" >"$debian/log" 2>&1 </dev/null || { tail -n 10 "$debian/log"; return 1; }
}

# debian_source PACKAGE FOLDER: the files of its source package into the folder, which is made.
debian_source()
{
    rm -rf "${debian:?}/src" && mkdir "$debian/src" && (cd "$debian/src" && debian_apt source --download-only "$1") &&
        mkdir -p "$2" && cp "$debian"/src/* "$2/"
}

# debian_package PACKAGE FOLDER: unpacks it into the folder, which is made.
debian_package()
{
    rm -rf "${debian:?}/bin" && mkdir "$debian/bin" && (cd "$debian/bin" && debian_apt download "$1") &&
        mkdir -p "$2" && dpkg-deb -x "$debian"/bin/*.deb "$2"
}
