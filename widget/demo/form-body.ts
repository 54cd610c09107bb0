import type { IncomingMessage } from 'node:http'

const bytesAtMost = 8_192

/** A posted form's fields. Undefined where the body is longer than any of the shop's forms. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesAtMost) return undefined
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}

/** Whether a page of the shop itself sent the form. Browsers say so in one of the two headers, and no page can forge either. */
export function isFromOwnPage({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  return headers.origin !== undefined && URL.canParse(headers.origin) && new URL(headers.origin).host === headers.host
}
