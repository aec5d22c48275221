"""Programs for those who work on vgpuctl; none of them is part of the installed tool."""
