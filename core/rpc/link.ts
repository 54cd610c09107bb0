import { fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import type { Call, Frame, FrameSchema, LinkRequest, LinkResponseSchema } from '#proto/link/v1/link_pb.js'
import { createFrameQueue, joinParts, messageMaxBytes } from '../../platform/link/frame-queue.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { UnaryMethod } from './dispatcher.ts'

type FrameInit = MessageInitShape<typeof FrameSchema>

/** Maximum total size in bytes of the parts that a link received for unfinished calls. */
const partialMaxBytes = 2 * messageMaxBytes
/** Number of unsent answer bytes at which the core stops reading calls. */
const unsentMaxBytes = 16 * 1024 * 1024
const noBytes = new Uint8Array()

interface RunningCall {
  parts: Uint8Array[]
  size: number
  /** Aborted when the client cancels the call, or when the link ends. Created on first use. */
  controller?: AbortController
  isCancelled: boolean
  isRunning: boolean
}

/**
 * Serves one link: runs the calls of one client process and sends each answer when it is ready.
 * `signal` aborts when the client disconnects or the core stops. The running calls are then
 * aborted, like calls over HTTP. A call that finishes although it was aborted is still answered.
 */
export async function* serveLink(
  find: (name: string) => UnaryMethod | undefined,
  requests: AsyncIterable<LinkRequest>,
  signal: AbortSignal,
  { linkFrames, linkCalls }: Pick<CoreMetrics, 'linkFrames' | 'linkCalls'>,
): AsyncGenerator<MessageInitShape<typeof LinkResponseSchema>> {
  const queue = createFrameQueue<FrameInit>((id, value) => ({ id, kind: { case: 'part', value } }))
  const calls = new Map<number, RunningCall>()
  let partialBytes = 0
  let isInputOver = false
  /** Set when the client exceeds `partialMaxBytes`. The link then ends with this error. */
  let violation: ConnectError | undefined
  let onRoom: (() => void) | undefined

  const sendControl = (kind: 'ready' | 'drain') => queue.push(0, noBytes, () => ({ kind: { case: kind, value: {} } }))

  function endIfDone() {
    if (isInputOver && calls.size === 0) queue.end()
  }

  function fail(id: number, error: ConnectError) {
    const [info] = error.findDetails(ErrorInfoSchema)
    const value = { code: error.code, message: error.rawMessage, info }
    queue.push(id, noBytes, () => ({ id, kind: { case: 'failure', value } }))
  }

  async function run(id: number, call: RunningCall, { method, message, ...rest }: Call) {
    call.isRunning = true
    linkCalls.inc()
    try {
      const found = find(method)
      if (!found) throw new ConnectError('unknown method', Code.Unimplemented)
      if (call.size + message.length > messageMaxBytes) throw tooLarge()
      const answer = await found.run({
        header: headersOf(rest),
        timeoutMs: rest.timeoutMs,
        message: () => decode(found, joinParts([...call.parts, message])),
        signal: () => signalOf(call),
      })
      if (call.isCancelled) return
      const bytes = toBinary(found.method.output, answer)
      if (bytes.length > messageMaxBytes) throw tooLarge()
      queue.push(id, bytes, (value) => ({ id, kind: { case: 'answer', value } }))
    } catch (error) {
      if (!call.isCancelled) fail(id, ConnectError.from(error, Code.Internal))
    } finally {
      linkCalls.dec()
      remove(id, call)
    }
  }

  function signalOf(call: RunningCall): AbortSignal {
    if (!call.controller) {
      call.controller = new AbortController()
      if (call.isCancelled || signal.aborted) call.controller.abort()
    }
    return call.controller.signal
  }

  function remove(id: number, call: RunningCall) {
    partialBytes -= call.size
    calls.delete(id)
    endIfDone()
  }

  function callOf(id: number): RunningCall {
    const call = calls.get(id) ?? { parts: [], size: 0, isCancelled: false, isRunning: false }
    calls.set(id, call)
    return call
  }

  function handle({ id, kind }: Frame) {
    if (kind.case === 'call') {
      const call = callOf(id)
      if (!call.isRunning) void run(id, call, kind.value)
    } else if (kind.case === 'part') {
      const call = callOf(id)
      if (call.isRunning) return
      call.size += kind.value.length
      partialBytes += kind.value.length
      // A call that is too large fails when its last frame arrives. Its bytes are dropped.
      if (call.size <= messageMaxBytes) call.parts.push(kind.value)
      else call.parts = []
      if (partialBytes > partialMaxBytes) {
        violation = tooLarge()
        throw violation
      }
    } else if (kind.case === 'cancel') {
      queue.remove(id)
      const call = calls.get(id)
      if (!call) return
      call.isCancelled = true
      call.controller?.abort()
      if (!call.isRunning) remove(id, call)
    }
  }

  async function readCalls() {
    for await (const { frames } of requests) {
      linkFrames.observe(frames.length)
      for (const frame of frames) handle(frame)
      while (queue.queuedBytes() > unsentMaxBytes) await new Promise<void>((resolve) => (onRoom = resolve))
    }
  }

  function endInput() {
    isInputOver = true
    for (const [id, call] of calls) if (!call.isRunning) remove(id, call)
    endIfDone()
  }

  function stop() {
    sendControl('drain')
    for (const call of calls.values()) call.controller?.abort()
    onRoom?.()
  }

  signal.addEventListener('abort', stop, { once: true })
  sendControl('ready')
  readCalls().then(endInput, endInput)
  try {
    for await (const frames of queue.batches()) {
      yield { frames }
      onRoom?.()
    }
    if (violation) throw violation
  } finally {
    signal.removeEventListener('abort', stop)
    for (const call of calls.values()) {
      call.isCancelled = true
      call.controller?.abort()
    }
  }
}

function headersOf({ authorization, correlationId, traceparent }: Partial<Call>): Headers {
  const headers = new Headers()
  if (authorization) headers.set('authorization', authorization)
  if (correlationId !== undefined) headers.set('x-correlation-id', correlationId)
  if (traceparent !== undefined) headers.set('traceparent', traceparent)
  return headers
}

function decode({ method }: UnaryMethod, bytes: Uint8Array) {
  try {
    return fromBinary(method.input, bytes)
  } catch {
    throw new ConnectError('the request cannot be decoded', Code.InvalidArgument)
  }
}

const tooLarge = () => new ConnectError('the message is too large', Code.ResourceExhausted)
