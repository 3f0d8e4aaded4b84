check() { :; }
