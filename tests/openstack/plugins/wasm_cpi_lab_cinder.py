"""A Cinder volume driver: each volume and snapshot is a sparse file in one directory.

Cinder's own drivers need LVM, a storage system or NFS. Nothing is exported, because the
fake hypervisor accepts any connection. Images must be raw.
"""

import os
import subprocess

from cinder import interface
from cinder.volume import configuration, driver
from oslo_config import cfg

CAPACITY_GB = 10000
OPTIONS = [cfg.StrOpt("wasm_cpi_lab_dir", help="The directory of the volume files.")]
cfg.CONF.register_opts(OPTIONS, group=configuration.SHARED_CONF_GROUP)


def resize(path, gigabytes):
    with open(path, "ab") as file:
        file.truncate(gigabytes * 1024**3)


def copy(source, target):
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, target], check=True)


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


@interface.volumedriver
class FileDriver(driver.VolumeDriver):
    VERSION = "1.0"
    CI_WIKI_NAME = "none"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTIONS)

    @staticmethod
    def get_driver_options():
        return OPTIONS

    def path(self, volume_or_snapshot):
        return os.path.join(self.configuration.wasm_cpi_lab_dir, volume_or_snapshot.name)

    def do_setup(self, context):
        os.makedirs(self.configuration.wasm_cpi_lab_dir, exist_ok=True)

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        self._stats = {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name"),
            "vendor_name": "wasm-cpi",
            "driver_version": self.VERSION,
            "storage_protocol": "file",
            "total_capacity_gb": CAPACITY_GB,
            "free_capacity_gb": CAPACITY_GB,
            "reserved_percentage": 0,
            "QoS_support": False,
            "multiattach": False,
            "online_extend_support": True,
        }

    def create_volume(self, volume):
        resize(self.path(volume), volume.size)

    def delete_volume(self, volume):
        remove(self.path(volume))

    def extend_volume(self, volume, new_size):
        resize(self.path(volume), new_size)

    def retype(self, context, volume, new_type, diff, host):
        return True  # All volume types use the same kind of file.

    def create_snapshot(self, snapshot):
        copy(self.path(snapshot.volume), self.path(snapshot))

    def delete_snapshot(self, snapshot):
        remove(self.path(snapshot))

    def create_volume_from_snapshot(self, volume, snapshot):
        copy(self.path(snapshot), self.path(volume))
        resize(self.path(volume), volume.size)

    def create_cloned_volume(self, volume, source):
        copy(self.path(source), self.path(volume))
        resize(self.path(volume), volume.size)

    def copy_image_to_volume(self, context, volume, image_service, image_id, disable_sparse=False):
        with open(self.path(volume), "r+b") as file:
            image_service.download(context, image_id, file)
        resize(self.path(volume), volume.size)

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        with open(self.path(volume), "rb") as file:
            image_service.update(context, image_meta["id"], {}, file)

    def initialize_connection(self, volume, connector):
        return {"driver_volume_type": "fake", "data": {"path": self.path(volume), "access_mode": "rw"}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    def create_export(self, context, volume, connector):
        pass

    def ensure_export(self, context, volume):
        pass

    def remove_export(self, context, volume):
        pass
