import { type DescMethod, fromJson, getOption, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { scope } from '#proto/access/v1/access_pb.js'
import { brokenBytes, nearlyGood } from '../support/mutations.ts'
import { nastyBodies } from '../support/nasty-values.ts'
import type { Fixtures } from './fixtures.ts'
import { messagesOf } from './message-values.ts'
import type { RpcRequest } from './rpc-client.ts'

type Format = 'json' | 'proto'

/** RPC protocols by content type. In Connect streams, gRPC and gRPC-Web, each message has a frame header. */
const protocols: { type: string; format: Format; framed: boolean; streams: boolean | undefined }[] = [
  { type: 'application/json', format: 'json', framed: false, streams: false },
  { type: 'application/proto', format: 'proto', framed: false, streams: false },
  { type: 'application/connect+json', format: 'json', framed: true, streams: true },
  { type: 'application/connect+proto', format: 'proto', framed: true, streams: true },
  { type: 'application/grpc-web+proto', format: 'proto', framed: true, streams: undefined },
  { type: 'application/grpc-web+json', format: 'json', framed: true, streams: undefined },
  { type: 'application/grpc+proto', format: 'proto', framed: true, streams: undefined },
]

/** Generates calls of a method in any protocol: valid, nearly valid, and random bytes. */
export function rpcCases(method: DescMethod, fixtures: Fixtures): fc.Arbitrary<RpcRequest> {
  const isStream = method.methodKind !== 'unary'
  const fitting = protocols.filter(({ streams }) => streams === undefined || streams === isStream)
  return fc
    .oneof(
      { weight: 12, arbitrary: fc.constantFrom(...fitting) },
      { weight: 1, arbitrary: fc.constantFrom(...protocols) },
    )
    .chain(({ type, format, framed }) => {
      const messages = messageBytes(method, fixtures, format)
      const body = framed ? fc.array(messages, { minLength: 1, maxLength: isStream ? 3 : 1 }).chain(frames) : messages
      return fc.record({ body, headers: callHeaders(method, fixtures, type) })
    })
    .map(({ body, headers }) => ({ path: `/${method.parent.typeName}/${method.name}`, headers, body }))
}

function messageBytes(method: DescMethod, fixtures: Fixtures, format: Format): fc.Arbitrary<Buffer> {
  const good = messagesOf(method.input, fixtures.known)
  const encoded = good.map((json) => encode(method, json, format))
  const almost = format === 'json' ? good.chain(nearlyGood).map(jsonBytes) : encoded.chain(brokenBytes)
  return fc.oneof(
    { weight: 5, arbitrary: encoded },
    { weight: 4, arbitrary: almost },
    { weight: 1, arbitrary: encoded.chain(brokenBytes) },
    { weight: 1, arbitrary: fc.constantFrom(...nastyBodies) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  )
}

const jsonBytes = (value: unknown) => Buffer.from(JSON.stringify(value) ?? '')

/** Encodes a message. Uses JSON for values that the binary form cannot express. */
function encode(method: DescMethod, json: object, format: Format): Buffer {
  if (format === 'json') return jsonBytes(json)
  try {
    return Buffer.from(toBinary(method.input, fromJson(method.input, json as never)))
  } catch {
    return jsonBytes(json)
  }
}

/** Adds the five-byte header of flags and length to each message, sometimes with wrong values. */
function frames(messages: Buffer[]): fc.Arbitrary<Buffer> {
  const right = fc.constant({ flags: 0, lengthOff: 0 })
  const wrong = fc.record({
    flags: fc.constantFrom(0, 1, 2, 3, 128, 255),
    lengthOff: fc.constantFrom(0, 1, -1, 1000, 2 ** 31, 2 ** 32 - 1),
  })
  return fc
    .array(fc.oneof({ weight: 8, arbitrary: right }, { weight: 1, arbitrary: wrong }), { minLength: 3, maxLength: 3 })
    .map((heads) =>
      Buffer.concat(
        messages.flatMap((message, index) => {
          const { flags, lengthOff } = heads[index]!
          const head = Buffer.alloc(5)
          head.writeUInt8(flags, 0)
          head.writeUInt32BE(Math.min(2 ** 32 - 1, Math.max(0, message.length + lengthOff)), 1)
          return [head, message]
        }),
      ),
    )
}

function callHeaders(method: DescMethod, { serviceTokens, workspaceSession, accessGrant }: Fixtures, type: string) {
  const needed = getOption(method, scope)
  const own =
    needed === 'visitors:act'
      ? serviceTokens.gateway
      : needed === 'deliveries:work'
        ? serviceTokens.delivery
        : serviceTokens.operator
  const usual = { 'content-type': type, 'connect-protocol-version': '1', authorization: `Bearer ${own}` }
  const odd: fc.Arbitrary<Record<string, string>> = fc.constantFrom<Record<string, string>[]>(
    { authorization: `Bearer ${workspaceSession}` },
    { authorization: `Bearer ${accessGrant}` },
    { authorization: 'Bearer a.b.c' },
    { authorization: '' },
    { 'connect-timeout-ms': '0' },
    { 'connect-timeout-ms': '1' },
    { 'connect-timeout-ms': '-1' },
    { 'connect-timeout-ms': '99999999999' },
    { 'grpc-timeout': '1n' },
    { 'grpc-timeout': 'x' },
    { 'connect-protocol-version': '2' },
    { 'content-encoding': 'gzip' },
    { 'connect-content-encoding': 'br' },
    { 'content-type': `${type}; charset=utf-16` },
    { 'x-correlation-id': 'a b\tc' },
    { 'x-bin-bin': '***' },
  )
  return fc
    .oneof({ weight: 6, arbitrary: fc.constant<Record<string, string>>({}) }, { weight: 1, arbitrary: odd })
    .map((more): Record<string, string> => ({ ...usual, ...more }))
}
