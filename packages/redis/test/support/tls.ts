/** TLS in front of a server that has none, with a certificate made for the moment: nothing secret is kept in a file. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';

/** A TLS address of a plain server. */
export interface TlsFront {
  readonly port: number;
  /** The certificate, to be trusted. */
  readonly ca: string;
  /** Connections so far. */
  readonly accepted: number;
  close(): Promise<void>;
}

/** Listens on a free port, and passes on what comes. */
export async function startTls(target: { readonly host: string; readonly port: number }): Promise<TlsFront> {
  const { key, certificate } = selfSigned('localhost');
  let accepted = 0;
  const server = createServer({ key, cert: certificate }, (secure) => {
    accepted += 1;
    const plain = connect(target.port, target.host);
    secure.pipe(plain).pipe(secure);
    secure.on('error', () => plain.destroy());
    plain.on('error', () => secure.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    ca: certificate,
    get accepted() {
      return accepted;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** A certificate for one host name, valid from 2020 to 2049, as RFC 5280 lays it out. */
function selfSigned(host: string): { key: string; certificate: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, oid('2a8648ce3d040302'));
  const commonName = der(0x30, oid('550403'), der(0x0c, Buffer.from(host)));
  const name = der(0x30, der(0x31, commonName));
  const utcTime = (text: string): Buffer => der(0x17, Buffer.from(text));
  const names = der(0x30, der(0x82, Buffer.from(host)));
  const alternativeName = der(0x30, oid('551d11'), der(0x04, names));
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    der(0x30, utcTime('200101000000Z'), utcTime('491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, alternativeName)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]);
  const bytes = der(0x30, body, ecdsaWithSha256, der(0x03, signature));
  const lines = bytes.toString('base64').replace(/(.{64})/g, '$1\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

/** Tag, length and content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head =
    length < 128
      ? [tag, length]
      : length < 256
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), content]);
}
