"""Files larger than memory: cells and bins are counted in passes, and every distance gets proven bounds."""
