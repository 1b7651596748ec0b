"""The public shells: records with the methods that show, save and compare them."""
