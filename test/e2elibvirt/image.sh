#!/usr/bin/env bash
# Makes the disk image of a worker: Debian with Ignition, containerd, kubelet and kubeadm.
#
#   image.sh BIN FILE   with the folder of kubelet and kubeadm
set -euo pipefail

packages=linux-image-cloud-amd64,initramfs-tools,udev,systemd-sysv,systemd-resolved
packages+=,ignition,containerd,containernetworking-plugins,busybox-static
readonly boot=64 system=1536 # MiB

# configure ROOT adds what the packages leave to their users.
configure() {
  ln -sf /run/systemd/resolve/resolv.conf "$1/etc/resolv.conf"
  ln -s /usr/lib/dracut/modules.d/30ignition/ignition "$1/usr/bin/ignition"
  cat >"$1/sbin/first-boot" <<'INIT'
#!/bin/sh
# Ignition writes what the user data says before systemd reads it. Its last step, SELinux labels, fails: there is no policy.
if [ ! -e /etc/.ignition-result.json ]; then
  modprobe qemu_fw_cfg
  ignition --platform=qemu --root=/ --stage=fetch-offline
  ignition --platform=qemu --root=/ --stage=files
fi
exec /lib/systemd/systemd
INIT
  chmod +x "$1/sbin/first-boot"
  cat >"$1/etc/systemd/network/guest.network" <<'NETWORK'
[Match]
Name=en*
[Network]
DHCP=ipv4
NETWORK
  cat >"$1/etc/containerd/config.toml" <<'CONTAINERD'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/busybox:latest"
cni.bin_dir = "/usr/lib/cni"
containerd.runtimes.runc.runtime_type = "io.containerd.runc.v2"
containerd.runtimes.runc.options.SystemdCgroup = true
CONTAINERD
  mkdir -p "$1/etc/systemd/system/containerd.service.d"
  cat >"$1/etc/systemd/system/containerd.service.d/import.conf" <<'IMPORT'
[Service]
ExecStartPost=/usr/bin/ctr --namespace k8s.io images import /var/lib/busybox.tar
IMPORT
  mkdir -p "$1/etc/cni/net.d"
  cat >"$1/etc/cni/net.d/pods.conflist" <<'CNI'
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]]}}]}
CNI
  cat >"$1/etc/systemd/system/kubelet.service" <<'KUBELET'
[Unit]
After=containerd.service
ConditionPathExists=/var/lib/kubelet/config.yaml
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
  --kubeconfig=/etc/kubernetes/kubelet.conf $KUBELET_KUBEADM_ARGS
Restart=always
[Install]
WantedBy=multi-user.target
KUBELET
  chroot "$1" systemctl --quiet enable systemd-networkd kubelet
  echo uninitialized >"$1/etc/machine-id" # so that systemd enables the units of Ignition
}

# container DIR adds the only image that Pods can use: workers reach no registry.
container() {
  tar -C "$1/root/usr" -cf "$1/layer.tar" bin/busybox
  printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/bin/busybox","sleep","1000000"]},
    "rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$(sha256sum <"$1/layer.tar" | cut -d' ' -f1)" >"$1/config.json"
  echo '[{"Config":"config.json","RepoTags":["localhost/busybox:latest"],"Layers":["layer.tar"]}]' >"$1/manifest.json"
  tar -C "$1" -cf "$1/root/var/lib/busybox.tar" layer.tar config.json manifest.json
}

# pack DIR FILE makes the disk: a partition that starts the kernel, and the root.
pack() {
  local disk=$1/disk
  truncate -s "$((boot + system + 1))M" "$disk"
  printf '%s\n' "1MiB ${boot}MiB 6 *" "$((boot + 1))MiB" | sfdisk --quiet "$disk"
  dd if=/usr/lib/SYSLINUX/mbr.bin of="$disk" conv=notrunc status=none
  echo 'DEFAULT vmlinuz initrd=initrd root=/dev/vda2 rw init=/sbin/first-boot console=ttyS0 quiet' >"$1/syslinux.cfg"
  mformat -i "$disk@@1M" -T "$((boot * 2048))" ::
  mcopy -i "$disk@@1M" "$1/syslinux.cfg" ::
  mcopy -i "$disk@@1M" "$1"/root/boot/vmlinuz-* ::vmlinuz
  mcopy -i "$disk@@1M" "$1"/root/boot/initrd.img-* ::initrd
  syslinux --offset "$((1 << 20))" --install "$disk"
  mke2fs -q -t ext4 -d "$1/root" -E "offset=$(((boot + 1) << 20))" "$disk" "${system}M"
  qemu-img convert -O qcow2 "$disk" "$2"
}

main() {
  local dir
  command -v mmdebstrap mcopy syslinux sfdisk >/dev/null ||
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends mmdebstrap mtools syslinux fdisk >/dev/null
  dir=$(mktemp -d)
  # shellcheck disable=SC2064 # it is known now
  trap "rm -rf '$dir'" EXIT
  mmdebstrap --quiet --variant=minbase --include="$packages" bookworm "$dir/root"
  install -t "$dir/root/usr/bin" "$1/kubelet" "$1/kubeadm"
  configure "$dir/root"
  container "$dir"
  pack "$dir" "$2"
}

main "$@"
