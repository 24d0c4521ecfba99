"""The life of a deployment: every operation that a CPI uses, and mistakes that the simulator must refuse.

Steps have names, under which the outcomes of two clouds are compared, and README.md lists deviations.
"""

from .disks import disks
from .identities import identities
from .images import blocks, images
from .instances import finish, launch
from .load_balancers import load_balancers
from .networks import networks


def scenario(cloud):
    own = cloud.description
    identities(cloud, own)
    networks(cloud, own)
    instance = launch(cloud, own)
    load_balancers(cloud, own, instance)
    disks(cloud, own, instance)
    images(cloud, own)
    blocks(cloud)
    finish(cloud, instance)
