"""The experiments of the paper on its own data, a module for each (`make reproduce`)."""
