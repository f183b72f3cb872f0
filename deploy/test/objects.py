"""What to look for among the objects that the chart renders."""

PORTS = {"grpc": 7171, "http-metrics": 7172, "health": 7173}


CONSOLE = "console"


def is_console(found):
    """What the chart makes beside the server, where it is asked to."""
    return found["metadata"]["labels"].get("app.kubernetes.io/component") == CONSOLE


def without_console(objects):
    return [found for found in objects if not is_console(found)]


def of_kind(objects, kind):
    return [found for found in objects if found["kind"] == kind]


def pod_templates(objects):
    """The (name, metadata, spec) of everything that becomes a pod."""
    for found in objects:
        name = f"{found['kind']}/{found['metadata']['name']}"
        if found["kind"] == "Pod":
            yield name, found["metadata"], found["spec"]
        elif "template" in found.get("spec", {}):
            template = found["spec"]["template"]
            yield name, template["metadata"], template["spec"]


def containers(spec):
    return spec.get("initContainers", []) + spec["containers"]


def server(objects):
    """What makes the server's pods: exactly one of two kinds."""
    objects = without_console(objects)
    (found,) = of_kind(objects, "StatefulSet") + of_kind(objects, "Deployment")
    return found


def server_spec(objects):
    return server(objects)["spec"]["template"]["spec"]


def server_container(objects):
    (found,) = [
        container
        for container in server_spec(objects)["containers"]
        if container["name"] == "timecached"
    ]
    return found


def config_text(objects):
    name = server_spec(objects)["volumes"][0]["configMap"]["name"]
    (config,) = [
        found
        for found in of_kind(objects, "ConfigMap")
        if found["metadata"]["name"] == name
    ]
    return config["data"]["timecached.yaml"]
