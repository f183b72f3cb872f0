"""Writes the JSON schemas that kubeconform needs: schemas.py DIRECTORY MODULES.

MODULES is Go's module cache. Kubernetes' own OpenAPI files are in the module
k8s.io/kubernetes, the Prometheus operator's and cert-manager's in their own: their $refs are resolved,
and fields that they do not name are refused, at every depth. A schema's file is
named as kubeconform looks for it: statefulset-apps-v1.json.
"""

import json
import pathlib
import sys

import yaml

KUBERNETES = "k8s.io/kubernetes@v1.31.4/api/openapi-spec/v3"
OPERATOR = (
    "github.com/prometheus-operator/prometheus-operator@v0.79.2/example/"
    "prometheus-operator-crd"
)
# The groups whose kinds the chart renders.
GROUPS = [
    "api__v1",
    "apis__apps__v1",
    "apis__networking.k8s.io__v1",
    "apis__policy__v1",
]
CERT_MANAGER = "github.com/cert-manager/cert-manager@v1.15.3/deploy/crds"
CUSTOM_KINDS = [
    f"{OPERATOR}/monitoring.coreos.com_servicemonitors.yaml",
    f"{OPERATOR}/monitoring.coreos.com_prometheusrules.yaml",
    f"{CERT_MANAGER}/crd-certificates.yaml",
]
KINDS_KEY = "x-kubernetes-group-version-kind"


def strict(schema, definitions):
    """The schema without references, which takes no field that it does not name."""
    if isinstance(schema, list):
        return [strict(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
        return strict(schema, definitions)
    if len(schema.get("allOf", [])) == 1:
        # OpenAPI's way to give a reference a description of its own.
        return strict(schema["allOf"][0], definitions)
    if schema.get("format") == "int-or-string" or schema.get(
        "x-kubernetes-int-or-string"
    ):
        return {"type": ["integer", "string"]}
    result = {
        key: strict(value, definitions)
        for key, value in schema.items()
        if key != "properties"
    }
    if "properties" in schema:
        # Apart, since a field may be called "format" or "allOf".
        result["properties"] = {
            name: strict(field, definitions)
            for name, field in schema["properties"].items()
        }
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
    return result


def file_name(kind, group, version):
    parts = [kind, group.split(".")[0], version]
    return "-".join(part.lower() for part in parts if part) + ".json"


def kubernetes_schemas(modules):
    for group in GROUPS:
        with open(modules / KUBERNETES / f"{group}_openapi.json") as file:
            definitions = json.load(file)["components"]["schemas"]
        for definition in definitions.values():
            kinds = definition.get(KINDS_KEY, [])
            # More than one: options of calls, which are in every group.
            if len(kinds) == 1 and "metadata" in definition.get("properties", {}):
                kind = kinds[0]
                name = file_name(kind["kind"], kind["group"], kind["version"])
                yield name, strict(definition, definitions)


def custom_schemas(modules):
    for path in CUSTOM_KINDS:
        with open(modules / path) as file:
            spec = yaml.safe_load(file)["spec"]
        for version in spec["versions"]:
            name = file_name(spec["names"]["kind"], spec["group"], version["name"])
            yield name, strict(version["schema"]["openAPIV3Schema"], {})


def main():
    directory, modules = map(pathlib.Path, sys.argv[1:])
    directory.mkdir(parents=True, exist_ok=True)
    for schemas in kubernetes_schemas, custom_schemas:
        for name, schema in schemas(modules):
            with open(directory / name, "w") as file:
                json.dump(schema, file)


if __name__ == "__main__":
    main()
