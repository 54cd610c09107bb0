import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from './scenarios.ts'

/** A request that the server has received. */
export interface SeenRequest {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingMessage['headers']
  body: Record<string, unknown> | undefined
  /** Request body before parsing. */
  bytes: Buffer
}

export async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export function answer(response: ServerResponse, status: number, body: unknown) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
  response.end(JSON.stringify(body))
}

export function refuse(response: ServerResponse, { status, code, retryable, terminal, retryAfter, issues }: Refusal) {
  if (retryAfter !== undefined) response.setHeader('Retry-After', String(retryAfter))
  const envelope = {
    code,
    retryable: retryable ?? (status >= 429 || code === 'OperationInProgress'),
    terminal: terminal ?? false,
    retryAfter,
    issues,
  }
  answer(response, status, { ...envelope, correlationId: String(response.getHeader('X-Correlation-Id')) })
}
