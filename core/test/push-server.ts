import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { decodeJwt, importJWK, jwtVerify } from 'jose'
import { afterAll } from 'vitest'
import { testAuthority, testCertificates } from '../../test/support/certificates.ts'

interface ReceivedPush {
  path: string
  headers: Record<string, string | string[] | undefined>
  payload: { title: string; body: string; path: string; tag: string }
}

/** Starts a push service (RFC 8030) with browsers, until the end of the file's tests. */
export async function startPushServer() {
  const browsers = new Map<string, ReturnType<typeof newBrowser>>()
  const server = {
    ca: testAuthority,
    pushes: [] as ReceivedPush[],
    /** Status of the answers. */
    status: 201,
    requests: 0,
    /** Returns the subscription of a new browser. */
    subscribe(publicKey: string) {
      const browser = newBrowser(publicKey)
      const path = `/push/${randomBytes(8).toString('hex')}`
      browsers.set(path, browser)
      return { endpoint: `${origin}${path}`, ...browser.keys }
    },
  }
  const listener = https.createServer(testCertificates.good, async (request, answer) => {
    server.requests += 1
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const browser = browsers.get(request.url!)
    if (server.status < 300 && browser) {
      await verifyVapid(String(request.headers.authorization), origin, browser.serverKey)
      const payload = JSON.parse(browser.decrypt(Buffer.concat(chunks)))
      server.pushes.push({ path: request.url!, headers: request.headers, payload })
    }
    answer.writeHead(server.status, { location: `${origin}/elsewhere` }).end('x')
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const origin = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`
  afterAll(() => void listener.close())
  return server
}

/** Verifies the signature of the sender (RFC 8292) with the key with which the browser subscribed. */
async function verifyVapid(authorization: string, audience: string, serverKey: string) {
  const [, token = '', key] = /^vapid t=([^,]+), ?k=(.+)$/.exec(authorization) ?? []
  if (key !== serverKey) throw new Error('the push has another key')
  const point = Buffer.from(serverKey, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'))
  await jwtVerify(token, await importJWK({ kty: 'EC', crv: 'P-256', x, y }, 'ES256'), { audience })
  if (!/^(mailto:|https:)/.test(String(decodeJwt(token).sub))) throw new Error('the push has no contact')
}

/** A browser that decrypts pushes (RFC 8291, RFC 8188). */
function newBrowser(serverKey: string) {
  const ecdh = createECDH('prime256v1')
  const publicKey = ecdh.generateKeys()
  const auth = randomBytes(16)
  const derive = (secret: Buffer, salt: Buffer, info: Buffer | string, length: number) =>
    Buffer.from(hkdfSync('sha256', secret, salt, info, length))
  return {
    serverKey,
    keys: { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') },
    decrypt(body: Buffer): string {
      const salt = body.subarray(0, 16)
      const idLength = body[20]!
      const senderKey = body.subarray(21, 21 + idLength)
      const sealed = body.subarray(21 + idLength)
      const info = Buffer.concat([Buffer.from('WebPush: info\0'), publicKey, senderKey])
      const secret = derive(ecdh.computeSecret(senderKey), auth, info, 32)
      const key = derive(secret, salt, 'Content-Encoding: aes128gcm\0', 16)
      const nonce = derive(secret, salt, 'Content-Encoding: nonce\0', 12)
      const decipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(sealed.subarray(-16))
      const plain = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
      return plain.subarray(0, plain.lastIndexOf(2)).toString()
    },
  }
}
