"""Makes what a cloud has before it has servers.

seed.py catalogue makes, with Keystone alone, the catalogue and a project with a user in it. seed.py rest makes flavors and a network outside,
and waits until there is a hypervisor.
"""

import os
import sys
import time

import openstack

LIMIT = 300  # seconds until the services respond

cloud = openstack.connect(cloud="admin")


def until(what, done):
    """Waits until a function returns something, while services still start."""
    end, last = time.monotonic() + LIMIT, None
    while time.monotonic() < end:
        try:
            if done():
                return
        except Exception as error:  # pylint: disable=broad-except
            last = error
        time.sleep(0.5)
    raise SystemExit(f"{what}: not within {LIMIT} seconds: {last}")


def catalogue():
    identity = cloud.identity
    # Services prove with this role that a request of a user comes through them.
    service_role = identity.create_role(name="service")
    identity.assign_project_role_to_user(identity.find_project("admin"), identity.find_user("admin"), service_role)
    for kind, name, url in (
        ("image", "glance", os.environ["IMAGE_URL"]),
        ("placement", "placement", os.environ["PLACEMENT_URL"]),
        ("compute", "nova", os.environ["COMPUTE_URL"]),
        ("network", "neutron", os.environ["NETWORK_URL"]),
        ("volumev3", "cinderv3", os.environ["VOLUME_URL"]),
    ):
        service = identity.create_service(type=kind, name=name)
        identity.create_endpoint(service_id=service.id, interface="public", region_id="RegionOne", url=url)

    project = identity.create_project(name="openshift", domain_id="default")
    user = identity.create_user(name="worker", domain_id="default", password=os.environ["MEMBER_PASSWORD"])
    identity.assign_project_role_to_user(project, user, identity.find_role("member"))


def rest():
    until("flavors", lambda: cloud.compute.create_flavor(name="m1.xlarge", vcpus=8, ram=16384, disk=160, ephemeral=20))
    cloud.compute.create_flavor(name="m1.small", vcpus=1, ram=2048, disk=20)
    cloud.set_compute_quotas(cloud.identity.find_project("openshift").id, cores=-1, ram=-1, instances=-1)

    outside = cloud.network.create_network(name="outside", is_router_external=True, provider_network_type="flat", provider_physical_network="outside")
    cloud.network.create_subnet(
        network_id=outside.id, name="outside", ip_version=4, cidr="203.0.113.0/24", is_dhcp_enabled=False,
        allocation_pools=[{"start": "203.0.113.10", "end": "203.0.113.200"}],
    )

    until("a hypervisor", lambda: list(cloud.compute.hypervisors()))
    until("a host of volumes", lambda: "up" in [s["state"] for s in cloud.block_storage.get("/os-services?binary=cinder-volume").json()["services"]])


{"catalogue": catalogue, "rest": rest}[sys.argv[1]]()
