"""Compares proto/google/rpc with Google's own, and looks for the options by which
generated code gets its names. The Python program's environment has what it needs."""

import glob
import os
import sys
import tempfile

from google.protobuf import descriptor_pb2, text_format
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

# What protoc would otherwise choose, and what every file of ours says.
OPTIONS = ["csharp_namespace", "go_package", "java_multiple_files", "java_outer_classname",
           "java_package", "objc_class_prefix", "php_namespace", "ruby_package",
           "swift_prefix"]


def compiled(names):
    """The FileDescriptorProtos of our own files, by name."""
    with tempfile.NamedTemporaryFile() as out:
        # The first argument is the program's name; the well-known types are beside it.
        well_known = os.path.join(os.path.dirname(protoc.__file__), "_proto")
        code = protoc.main(["protoc", "-Iproto", f"-I{well_known}",
                            f"--descriptor_set_out={out.name}", *names])
        if code != 0:
            raise SystemExit("protoc failed")
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    return {file.name: file for file in files.file}


def without_json_names(message):
    """Only a compiler's output has them, not a generated module."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        without_json_names(nested)


def text(file):
    for message in file.message_type:
        without_json_names(message)
    return text_format.MessageToString(file)


def original(module):
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


def in_order(file):
    """Messages by name: their order in the file means nothing."""
    messages = sorted(file.message_type, key=lambda message: message.name)
    del file.message_type[:]
    file.message_type.extend(messages)
    return file


def main():
    problems = []
    originals = {module.DESCRIPTOR.name: original(module)
                 for module in (error_details_pb2, status_pb2)}
    ours = compiled(list(originals))
    for name, wanted in originals.items():
        if text(in_order(ours[name])) != text(in_order(wanted)):
            problems.append(f"{name} is not Google's:\n--- ours\n{text(ours[name])}"
                            f"--- Google's\n{text(wanted)}")
    names = [path.removeprefix("proto/")
             for path in sorted(glob.glob("proto/timecache/**/*.proto", recursive=True))]
    for name, file in compiled(names).items():
        problems += [f"{name} has no {option}" for option in OPTIONS
                     if not file.options.HasField(option)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(originals) + len(names)} files compared, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
