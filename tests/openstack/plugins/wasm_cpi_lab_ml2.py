"""A Neutron ML2 mechanism driver that binds every port on every host and transports no packets.

Neutron's own drivers need an agent on each host that builds real networks.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api

DETAILS = {
    portbindings.CAP_PORT_FILTER: False,
    portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2,
}


class BindAllDriver(api.MechanismDriver):
    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        pass

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_BRIDGE,
                DETAILS,
                status=constants.PORT_STATUS_ACTIVE,
            )
            return
