import { create, fromBinary, isMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient, type Transport, type UnaryResponse } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { type Failure, type Frame, type FrameSchema, LinkService } from '#proto/link/v1/link_pb.js'
import { createFrameQueue, joinParts, messageMaxBytes } from '../platform/link/frame-queue.ts'

type FrameInit = MessageInitShape<typeof FrameSchema>
type UnaryArguments = Parameters<Transport['unary']>

/** A stream to a core on which unary calls are sent. */
export interface Link {
  /** Whether calls may be sent: the core is ready and is not stopping. */
  isOpen(): boolean
  /** Like `Transport.unary`. If the link breaks, its running calls reject with `unavailable`. */
  unary: Transport['unary']
  /** Sends no more calls. Ends the stream after the last answer. */
  drain(): void
  /**
   * Resolves when the stream has ended. The result is true if the core does not have the link
   * service.
   */
  ended: Promise<boolean>
}

/** Metrics of the links of a process. */
export interface LinkMetrics {
  /** Number of frames (calls, parts of calls, cancellations) in each message on the stream. */
  linkFrames: { observe(calls: number): void }
  /** Number of calls that wait for an answer. */
  linkCalls: { inc(change: number): void }
}

/**
 * Number of unsent bytes at which further calls are rejected. It is reached only if the core reads
 * more slowly than this process sends.
 */
const unsentMaxBytes = 16 * 1024 * 1024
const lastId = 2 ** 32 - 1
const noBytes = new Uint8Array()

interface PendingCall {
  parts: Uint8Array[]
  size: number
  settle(result: Uint8Array | ConnectError): void
}

interface CallToSend {
  signal?: AbortSignal
  timeoutMs?: number
  header: Headers
  bytes: Uint8Array
}

/**
 * Opens a link. `authorization` is the `Authorization` header of the stream itself. Each call on
 * the stream is sent with its own header.
 */
export function openLink(transport: Transport, authorization: string, { linkFrames, linkCalls }: LinkMetrics): Link {
  const queue = createFrameQueue<FrameInit>((id, value) => ({ id, kind: { case: 'part', value } }))
  const calls = new Map<number, PendingCall>()
  const ending = new AbortController()
  let nextId = 1
  let state: 'opening' | 'open' | 'draining' | 'ended' = 'opening'

  async function* requests() {
    for await (const frames of queue.batches()) {
      linkFrames.observe(frames.length)
      yield { frames }
    }
  }

  async function receive(): Promise<boolean> {
    const { link } = createClient(LinkService, transport)
    try {
      const answers = link(requests(), { headers: { authorization }, signal: ending.signal })
      for await (const { frames } of answers) for (const frame of frames) handle(frame)
      return false
    } catch (error) {
      return ConnectError.from(error).code === Code.Unimplemented
    } finally {
      state = 'ended'
      ending.abort()
      queue.end()
      for (const [id, call] of [...calls]) call.settle(broken(queue.remove(id)))
    }
  }

  function handle({ id, kind }: Frame) {
    if (kind.case === 'ready') state = state === 'opening' ? 'open' : state
    if (kind.case === 'drain') drain()
    const call = calls.get(id)
    if (!call) return
    if (kind.case === 'part') {
      call.size += kind.value.length
      call.parts.push(kind.value)
      if (call.size > messageMaxBytes) cancel(id, new ConnectError('the answer is too large', Code.ResourceExhausted))
    } else if (kind.case === 'answer') call.settle(joinParts([...call.parts, kind.value]))
    else if (kind.case === 'failure') call.settle(errorOf(kind.value))
  }

  /** Ends a call in this process. Also cancels it in the core if the core may have received it. */
  function cancel(id: number, error: ConnectError) {
    const call = calls.get(id)
    if (!call) return
    if (!queue.remove(id)) queue.push(id, noBytes, () => ({ id, kind: { case: 'cancel', value: {} } }))
    call.settle(error)
  }

  function drain() {
    if (state === 'ended') return
    state = 'draining'
    if (calls.size === 0) queue.end()
  }

  function send(method: UnaryArguments[0], { signal, timeoutMs, header, bytes }: CallToSend): Promise<Uint8Array> {
    const id = nextId
    nextId += 1
    if (nextId > lastId) drain()
    return new Promise<Uint8Array>((resolve, reject) => {
      const abort = () => cancel(id, new ConnectError('the call was cancelled', Code.Canceled))
      const timer =
        timeoutMs !== undefined && timeoutMs > 0
          ? setTimeout(() => cancel(id, new ConnectError('the deadline has passed', Code.DeadlineExceeded)), timeoutMs)
          : undefined
      signal?.addEventListener('abort', abort)
      calls.set(id, {
        parts: [],
        size: 0,
        settle(result) {
          calls.delete(id)
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          linkCalls.inc(-1)
          if (result instanceof ConnectError) reject(result)
          else resolve(result)
          if (state === 'draining' && calls.size === 0) queue.end()
        },
      })
      linkCalls.inc(1)
      const fields = {
        method: `${method.parent.typeName}/${method.name}`,
        timeoutMs,
        authorization: header.get('authorization') ?? '',
        correlationId: header.get('x-correlation-id') ?? undefined,
        traceparent: header.get('traceparent') ?? undefined,
      }
      queue.push(id, bytes, (message) => ({ id, kind: { case: 'call', value: { ...fields, message } } }))
    })
  }

  return {
    ended: receive(),
    isOpen: () => state === 'open',
    drain,

    async unary(method, signal, timeoutMs, header, input): Promise<UnaryResponse<never, never>> {
      if (signal?.aborted) throw new ConnectError('the call was cancelled', Code.Canceled)
      const bytes = toBinary(method.input, isMessage(input, method.input) ? input : create(method.input, input))
      if (bytes.length > messageMaxBytes) throw new ConnectError('the message is too large', Code.ResourceExhausted)
      if (queue.queuedBytes() + bytes.length > unsentMaxBytes) throw broken(true)
      const headers = header instanceof Headers ? header : new Headers(header)
      const answer = await send(method, { signal, timeoutMs, header: headers, bytes })
      return {
        stream: false,
        service: method.parent,
        method,
        header: new Headers(),
        trailer: new Headers(),
        message: fromBinary(method.output, answer),
      } as never
    },
  }
}

function errorOf({ code, message, info }: Failure): ConnectError {
  const details = info ? [{ desc: ErrorInfoSchema, value: info }] : []
  return new ConnectError(message, code, undefined, details)
}

/**
 * Returns the error for a call whose link broke. The code of its cause is `LINK_NOT_SENT` if no
 * part of the call was sent.
 */
function broken(isUnsent: boolean): ConnectError {
  const cause = Object.assign(new Error('link broken'), { code: isUnsent ? 'LINK_NOT_SENT' : 'LINK_BROKEN' })
  return new ConnectError('the link to the core broke', Code.Unavailable, undefined, undefined, cause)
}
