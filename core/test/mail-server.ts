import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterAll } from 'vitest'

export interface ReceivedMail {
  to: string[]
  /** By name in lower case; unfolded and decoded. */
  headers: Map<string, string>
  /** Number of header lines with each name. */
  raw: string
  text: string
  html: string
}

/** Starts an SMTP server until the end of the file's tests. `answer` may refuse mails. */
export async function startMailServer() {
  const server = {
    mails: [] as ReceivedMail[],
    url: '',
    /** Answers a mail. By default, accepts it. */
    answer: undefined as undefined | ((mail: ReceivedMail) => Error | undefined | Promise<Error | undefined>),
    /** Answers a recipient. By default, accepts it. */
    recipient: undefined as undefined | ((address: string) => Error | undefined),
    /** Cuts all connections. */
    cut() {
      for (const connection of smtp.connections) (connection as unknown as { _socket: Socket })._socket.destroy()
    },
    close: () => new Promise<void>((resolve) => smtp.close(resolve)),
  }
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: ({ address }, _session, done) => done(server.recipient?.(address)),
    onData(stream, { envelope }, done) {
      let raw = ''
      stream.setEncoding('latin1')
      stream.on('data', (chunk) => (raw += chunk))
      stream.on('end', async () => {
        const mail = readMail(
          raw,
          envelope.rcptTo.map(({ address }) => address),
        )
        const refusal = await server.answer?.(mail)
        if (!refusal) server.mails.push(mail)
        done(refusal)
      })
    },
  })
  smtp.on('error', () => {})
  smtp.listen(0, '127.0.0.1')
  await once(smtp.server, 'listening')
  server.url = `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`
  afterAll(server.close)
  return server
}

export const refusal = (responseCode: number) => Object.assign(new Error('refused'), { responseCode })

function readMail(raw: string, to: string[]): ReceivedMail {
  const { headers, body } = readPart(raw)
  const boundary = /boundary="?([^";]+)/.exec(headers.get('content-type') ?? '')?.[1]
  const parts = boundary
    ? body
        .split(`--${boundary}`)
        .slice(1, -1)
        .map((part) => readPart(part.replace(/^\r\n/, '')))
    : [{ headers, body }]
  const contentOf = (type: string) => {
    const part = parts.find((each) => each.headers.get('content-type')?.startsWith(type))
    return part ? decodeBody(part.body, part.headers.get('content-transfer-encoding')) : ''
  }
  return { to, raw, headers, text: contentOf('text/plain'), html: contentOf('text/html') }
}

function readPart(raw: string) {
  const end = raw.indexOf('\r\n\r\n')
  const lines = raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), decodeWords(line.slice(colon + 1).trim())]
    }),
  )
  return { headers, body: raw.slice(end + 4) }
}

function decodeBody(body: string, encoding = '7bit'): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  if (encoding !== 'quoted-printable') return body.replaceAll('\r\n', '\n')
  const bytes = body
    .replaceAll('=\r\n', '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString().replaceAll('\r\n', '\n')
}

/** Decodes the encoded words of a header (RFC 2047). */
const decodeWords = (value: string) =>
  value
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, kind: string, text: string) =>
      kind.toLowerCase() === 'b'
        ? Buffer.from(text, 'base64').toString('latin1')
        : text
            .replaceAll('_', ' ')
            .replace(/=([0-9A-F]{2})/g, (__, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    )
    .replace(/[\x80-\xff]+/g, (bytes) => Buffer.from(bytes, 'latin1').toString())
