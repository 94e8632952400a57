#%Module1.0
# SPDX-License-Identifier: BSD-3-Clause
# For Environment Modules and Lmod. The file lies in PREFIX/share/quoit/modulefiles/quoit, so an installation can be moved.
set prefix $ModulesCurrentModulefile
for {set up 0} {$up < 5} {incr up} {
    set prefix [file dirname $prefix]
}

module-whatis "Quoit: OpenSHMEM 1.6 for one machine, rings of hosts and networks"
proc ModulesHelp {} {
    puts stderr "Quoit, OpenSHMEM 1.6: oshcc prog.c -o prog; oshrun -n 4 ./prog; man oshrun"
}

conflict openmpi
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path CMAKE_PREFIX_PATH $prefix
foreach folder {lib64 lib} {
    if {[file exists $prefix/$folder/libshmem.so.1]} {
        prepend-path PKG_CONFIG_PATH $prefix/$folder/pkgconfig
        prepend-path PYTHONPATH $prefix/$folder/quoit/python
    }
}
