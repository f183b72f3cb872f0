// How a connection is secured. Internal, but for the options.

import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import * as grpc from '@grpc/grpc-js';
import { checkOptions, known, type Names } from './options.js';

/** How a connection is secured. All but the name is PEM: itself, or the name of a file that has it. */
export interface TlsOptions {
  /** Roots that the server's certificate must lead to. Default: Node's. */
  ca?: Buffer | string | undefined;
  /** The client's own certificate with its chain, for mutual TLS; with `key`. */
  cert?: Buffer | string | undefined;
  /** The private key of `cert`. */
  key?: Buffer | string | undefined;
  /**
   * As `ca`, `cert` and `key`, in files. They are read for each connection anew, so that certificates may be renewed
   * while the client runs; a connection that stands keeps what it was made with. Replace certificate and key together,
   * by a rename or a symbolic link.
   */
  caFile?: string | undefined;
  /** As `caFile`; with `keyFile`, or `key`. */
  certFile?: string | undefined;
  /** As `caFile`; with `certFile`, or `cert`. */
  keyFile?: string | undefined;
  /** The name that the server's certificate must have. Default: the address's host. */
  serverName?: string | undefined;
}

const TLS_OPTIONS: Names<TlsOptions> = {
  ca: true,
  cert: true,
  key: true,
  caFile: true,
  certFile: true,
  keyFile: true,
  serverName: true,
};
const KNOWN = known('tls', TLS_OPTIONS);

type CertificateProvider = grpc.experimental.CertificateProvider;
type Read = () => Buffer;

/** Whether what is sent to an address stays on this machine. */
export function isLocal(address: string): boolean {
  return /^(unix:|localhost(:|$)|127\.\d+\.\d+\.\d+(:|$)|\[::1\](:|$))/.test(address);
}

/** TypeError: options that do not go together. What the system says: a file that cannot be read. */
export function makeCredentials(tls: boolean | TlsOptions | undefined): grpc.ChannelCredentials {
  if (!tls) return grpc.credentials.createInsecure();
  const options = tls === true ? {} : tls;
  checkOptions(options, KNOWN);
  const ca = reader(options, 'ca', 'caFile');
  const cert = reader(options, 'cert', 'certFile');
  const key = reader(options, 'key', 'keyFile');
  if (!cert !== !key) throw new TypeError('tls.cert and tls.key go together');
  if (!options.caFile && !options.certFile && !options.keyFile) {
    return grpc.credentials.createSsl(ca?.(), key?.(), cert?.());
  }
  const provider = makeProvider(ca ?? (() => Buffer.from(rootCertificates.join('\n'))), cert, key);
  return grpc.experimental.createCertificateProviderChannelCredentials(provider, cert ? provider : null);
}

function reader(
  options: TlsOptions,
  name: 'ca' | 'cert' | 'key',
  fileName: `${typeof name}File`,
): Read | undefined {
  const { [name]: text, [fileName]: path } = options;
  if (text !== undefined && path !== undefined)
    throw new TypeError(`tls.${name} and tls.${fileName} exclude each other`);
  if (text !== undefined) return () => Buffer.from(text);
  if (path === undefined) return undefined;
  readFileSync(path); // One that is not there is told now, and by its name.
  return () => readFileSync(path);
}

/** gRPC looks into what it was given last whenever it makes a connection: that is when the files are read. */
function makeProvider(ca: Read, cert: Read | undefined, key: Read | undefined): CertificateProvider {
  const caUpdate = {
    get caCertificate() {
      return ca();
    },
  };
  const identityUpdate = {
    get certificate() {
      return cert!();
    },
    get privateKey() {
      return key!();
    },
  };
  return {
    addCaCertificateListener: (listener) => process.nextTick(listener, caUpdate),
    removeCaCertificateListener: () => {},
    addIdentityCertificateListener: (listener) => process.nextTick(listener, identityUpdate),
    removeIdentityCertificateListener: () => {},
  };
}
