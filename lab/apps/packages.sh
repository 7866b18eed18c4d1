# dpkg installs 60 packages, in rounds.
debs 60
sync -f "$DIR"
install_round() { install_debs "$DIR/$round"; }
rounds packages_per_s 60 install_round
