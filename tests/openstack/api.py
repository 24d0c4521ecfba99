"""A client for the OpenStack APIs, with a token for one project and the endpoints of its catalog."""

import json
import urllib.error
import urllib.request


class Api:
    def __init__(self, identity, username, api_key, project):
        password = {"user": {"name": username, "domain": {"name": "Default"}, "password": api_key}}
        scope = {"project": {"name": project, "domain": {"name": "Default"}}}
        request = {"identity": {"methods": ["password"], "password": password}, "scope": scope}
        response, headers = send("POST", identity + "/auth/tokens", {"auth": request})
        self.token = headers["X-Subject-Token"]
        self.user = response["token"]["user"]["id"]
        self.project = response["token"]["project"]["id"]
        self.endpoints = {
            service["type"]: endpoint["url"]
            for service in response["token"]["catalog"]
            for endpoint in service["endpoints"]
            if endpoint["interface"] == "public"
        }

    def __call__(self, service, method, path, body=None):
        return send(method, self.endpoints[service] + path, body, self.token)[0]


def send(method, url, body=None, token=None):
    """Sends a request and returns the JSON body and the headers of the response; exits on an HTTP error."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data)
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("X-Auth-Token", token)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return (json.loads(text) if text else None), response.headers
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        raise SystemExit(f"{method} {url} failed with status {error.code}: {text}") from error
