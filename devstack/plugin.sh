# shellcheck shell=bash
# Sourced by DevStack as `plugin.sh MODE [PHASE]`: cpu-tiers for all services of Nova on this machine.
# DevStack sets DEST, NOVA_CONF, NOVA_CPU_CONF and NOVA_BIN_DIR, and has the functions iniset,
# is_service_enabled and pip_install.
CPU_TIERS_DIR=$DEST/cpu-tiers
# DevStack installs Nova in editable mode: Nova is not in the folder in which pip puts the driver.
CPU_TIERS_DROP_IN=${SYSTEMD_DIR:-/etc/systemd/system}/devstack@n-cpu.service.d/cpu-tiers.conf

# DevStack copies nova.conf to the file of nova-compute when it starts nova-compute.
function configure_cpu_tiers {
    iniset "$NOVA_CONF" filter_scheduler query_placement_for_vcpu_shares True
    iniset "$NOVA_CONF" filter_scheduler weight_classes \
        nova.scheduler.weights.all_weighers,cpu_tiers.ResourceProviderWeigher
    iniset "$NOVA_CONF" api refuse_faulty_flavors True
    iniset "$NOVA_CONF" DEFAULT compute_driver cpu_tiers.LibvirtDriver
    iniset "$NOVA_CONF" libvirt report_vcpu_shares True
    iniset "$NOVA_CONF" libvirt vcpu_share_multiplier "$CPU_TIERS_SHARE_MULTIPLIER"
}

# Lets systemd start nova-compute by the launcher of cpu-tiers, which knows where the driver is.
function launch_cpu_tiers {
    sudo mkdir -p "$(dirname "$CPU_TIERS_DROP_IN")"
    sudo tee "$CPU_TIERS_DROP_IN" >/dev/null <<END
[Service]
ExecStart=
ExecStart=$NOVA_BIN_DIR/cpu-tiers-nova-compute --config-file $NOVA_CPU_CONF
END
    sudo systemctl daemon-reload
}

case "$1 ${2:-}" in
"stack install")
    pip_install "${CPU_TIERS_DIR}[tools]"
    ;;
"stack post-config")
    configure_cpu_tiers
    if is_service_enabled n-cpu; then
        launch_cpu_tiers
    fi
    ;;
"unstack "*)
    sudo rm -f "$CPU_TIERS_DROP_IN"
    ;;
esac
