import { getOption } from '@bufbuild/protobuf'
import { Code } from '@connectrpc/connect'
import { ErrorCode, ErrorCodeSchema, type ErrorInfo, type ErrorRule, rule } from '#proto/error/v1/error_pb.js'

type PascalCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Capitalize<Lowercase<Head>>}${PascalCase<Tail>}`
  : Capitalize<Lowercase<Name>>

/** Every public error code (specification, section 7), for example `RateLimited`. */
export type PublicErrorCode = PascalCase<Exclude<keyof typeof ErrorCode, 'UNSPECIFIED'>>

/** A violated rule of a field: its JSON pointer and the name of the rule, never the value. */
export type FieldIssue = Pick<ErrorInfo['issues'][number], 'path' | 'rule'>

/** Escapes a name for a JSON pointer. */
export const pointerToken = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

export interface PublicError extends Omit<ErrorRule, '$typeName' | '$unknown'> {
  code: PublicErrorCode
}

const rows = ErrorCodeSchema.values
  .filter(({ number }) => number !== ErrorCode.UNSPECIFIED)
  .map((value): [ErrorCode, PublicError] => {
    const { httpStatus, retryable, terminal, meaning, remedy } = getOption(value, rule)
    const code = pascalCase(value.localName) as PublicErrorCode
    return [value.number, { code, httpStatus, retryable, terminal, meaning, remedy }]
  })

const byNumber = new Map(rows)
const byCode = new Map<string, PublicError>(rows.map(([, row]) => [row.code, row]))

/** All rows of the public error table, in the order of `proto/service/error`. */
export const publicErrors: readonly PublicError[] = [...byNumber.values()]

export const publicError = (code: PublicErrorCode | ErrorCode): PublicError =>
  (typeof code === 'string' ? byCode.get(code) : byNumber.get(code))!

export const isPublicErrorCode = (name: string): name is PublicErrorCode => byCode.has(name)

/** Returns the Connect code of an error with an `ErrorInfo` detail. */
export function connectCodeOf({ code, httpStatus }: PublicError): Code {
  if (code === 'IdempotencyConflict') return Code.AlreadyExists
  return connectCodes[httpStatus] ?? Code.Internal
}

const connectCodes: Record<number, Code> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  405: Code.Unimplemented,
  409: Code.FailedPrecondition,
  410: Code.FailedPrecondition,
  // As Connect answers a message that is too large.
  413: Code.ResourceExhausted,
  415: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  503: Code.Unavailable,
}

function pascalCase(name: string) {
  return name
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
}
