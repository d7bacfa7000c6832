/** An authority of a test's own, and certificates that it signed: made for the moment, with openssl. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Files in PEM: the authority's certificate, and a certificate with its key. */
export interface Certified {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** A folder with an authority in it. */
export class Authority {
  readonly caFile: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'guard-certificates-'));

  constructor() {
    this.caFile = this.#path('ca.pem');
    this.#openssl(
      'req',
      '-x509',
      ...KEY,
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-subj',
      '/CN=Guard tests',
      '-days',
      '2',
    );
  }

  /** A certificate of the loopback address and of `name`, for servers and clients. */
  certify(name: string): Certified {
    const [key, csr, cert, extensions] = ['key', 'csr', 'pem', 'ext'].map((kind) => `${name}.${kind}`) as [
      string,
      string,
      string,
      string,
    ];
    writeFileSync(
      this.#path(extensions),
      'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n',
    );
    this.#openssl('req', ...KEY, '-keyout', key, '-out', csr, '-subj', `/CN=${name}`);
    this.#openssl(
      'x509',
      '-req',
      '-in',
      csr,
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-out',
      cert,
      '-days',
      '2',
      '-extfile',
      extensions,
    );
    return { caFile: this.caFile, certFile: this.#path(cert), keyFile: this.#path(key) };
  }

  /** Removes everything. */
  end(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: 'pipe' });
  }
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** What a client of etcd3 shows and trusts. */
export function credentialsOf({ caFile, certFile, keyFile }: Certified): {
  readonly rootCertificate: Buffer;
  readonly certChain: Buffer;
  readonly privateKey: Buffer;
} {
  return {
    rootCertificate: readFileSync(caFile),
    certChain: readFileSync(certFile),
    privateKey: readFileSync(keyFile),
  };
}
