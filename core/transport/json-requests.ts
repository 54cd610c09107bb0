import { type DescEnum, type DescMessage, type DescMethod, fromJson, type JsonValue } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { createAsyncIterable, type UniversalServerRequest } from '@connectrpc/connect/protocol'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { type FieldIssue, pointerToken } from '../../contract/errors.ts'
import { ServiceError } from '../errors.ts'
import { isObject } from '../rules.ts'
import { toErrorInfo } from './connect-errors.ts'

const maxIssues = 20
const maxPathLength = 256

/** Moves the JSON message of a GET from the query to the body. */
export function withoutQuery(method: DescMethod, request: UniversalServerRequest): UniversalServerRequest {
  const mayGet = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
  if (request.method !== 'GET' || !mayGet) return request
  const query = new URL(request.url).searchParams
  if (query.get('encoding') !== 'json' || query.has('compression')) return request
  const message = Buffer.from(query.get('message') ?? '', query.get('base64') === '1' ? 'base64url' : 'utf8')
  const header = new Headers(request.header)
  header.set('content-type', 'application/json')
  header.delete('content-encoding')
  return { ...request, method: 'POST', header, body: createAsyncIterable([message]) }
}

/**
 * Rejects unknown fields and enum values of a JSON message with `ValidationFailed`. Otherwise a misspelt
 * field would be ignored without an error. Binary messages may have unknown fields, so that processes of
 * different versions can call each other.
 */
export function requireKnown(type: DescMessage, bytes: Uint8Array) {
  const issues = issuesOf(type, bytes)
  if (issues.length === 0) return
  const failure = new ServiceError('ValidationFailed', { issues: issues.slice(0, maxIssues) })
  const detail = { desc: ErrorInfoSchema, value: toErrorInfo(failure) }
  throw new ConnectError(describe(issues[0]!), Code.InvalidArgument, undefined, [detail])
}

const describe = ({ path, rule }: FieldIssue) =>
  path === '' ? 'ValidationFailed' : `ValidationFailed: ${path} (${rule})`

function issuesOf(type: DescMessage, bytes: Uint8Array): FieldIssue[] {
  try {
    const json = JSON.parse(new TextDecoder().decode(bytes)) as JsonValue
    const issues = [...unknownParts(type, json, '')]
    if (issues.length === 0) fromJson(type, json)
    return issues
  } catch {
    // The parser's error quotes the value, so it is not passed on.
    return [{ path: '', rule: 'json' }]
  }
}

function* unknownParts(type: DescMessage, json: JsonValue, at: string): Generator<FieldIssue> {
  // These types have JSON forms of their own.
  if (type.typeName.startsWith('google.protobuf.') || !isObject(json)) return
  for (const [name, value] of Object.entries(json)) {
    const path = `${at}/${pointerToken(name)}`.slice(0, maxPathLength).toWellFormed()
    const field = type.fields.find((each) => each.jsonName === name || each.name === name)
    if (!field) {
      yield { path, rule: 'additionalProperties' }
      continue
    }
    for (const [place, part] of partsOf(field.fieldKind, value, path)) {
      if (field.message) yield* unknownParts(field.message, part, place)
      else if (field.enum && !isKnown(field.enum, part)) yield { path: place, rule: 'enum' }
    }
  }
}

/** Returns the values of a list or a map with their paths, or the one value of another field. */
function partsOf(kind: string, value: JsonValue, path: string): [string, JsonValue][] {
  if (kind === 'list' && Array.isArray(value)) return value.map((part, index) => [`${path}/${index}`, part])
  if (kind === 'map' && isObject(value)) return Object.values(value).map((part) => [path, part])
  return [[path, value]]
}

function isKnown(type: DescEnum, value: JsonValue) {
  if (value === null || type.typeName.startsWith('google.protobuf.')) return true
  return type.values.some(({ name, number }) => name === value || number === value)
}
