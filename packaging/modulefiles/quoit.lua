-- SPDX-License-Identifier: BSD-3-Clause
-- For Lmod. The file lies in PREFIX/share/quoit/modulefiles/quoit, so an installation can be moved.
local prefix = myFileName()
for _ = 1, 5 do prefix = string.gsub(prefix, "/[^/]*$", "") end

whatis("Name: Quoit")
whatis("Version: " .. myModuleVersion())
whatis("Description: OpenSHMEM 1.6 for one machine, rings of hosts and networks")
help([[Quoit, OpenSHMEM 1.6: oshcc prog.c -o prog; oshrun -n 4 ./prog; man oshrun]])

conflict("openmpi")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
for _, folder in ipairs({"lib64", "lib"}) do
  local library = pathJoin(prefix, folder)
  if isFile(pathJoin(library, "libshmem.so.1")) then
    prepend_path("PKG_CONFIG_PATH", pathJoin(library, "pkgconfig"))
    prepend_path("PYTHONPATH", pathJoin(library, "quoit/python"))
  end
end
