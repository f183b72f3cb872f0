"""timecached beside its peers: the benchmark behind `./dev bench peers`."""
