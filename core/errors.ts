import { getOption } from '@bufbuild/protobuf'
import { ErrorCode, ErrorCodeSchema, rule } from '#proto/error/v1/error_pb.js'

/**
 * A violated rule of a field. It has the JSON pointer of the field and the name of the rule, never
 * the value.
 */
export interface FieldIssue {
  path: string
  rule: string
}

interface ErrorContract {
  /** Public name, for example `RateLimited`. */
  name: string
  httpStatus: number
  retryable: boolean
  terminal: boolean
}

/** The public error codes from the contract in `proto/service/error` (specification, section 7). */
export const errorContracts: ReadonlyMap<ErrorCode, ErrorContract> = new Map(
  ErrorCodeSchema.values
    .filter((value) => value.number !== ErrorCode.UNSPECIFIED)
    .map((value) => {
      const { httpStatus, retryable, terminal } = getOption(value, rule)
      return [value.number, { name: pascalCase(value.localName), httpStatus, retryable, terminal }]
    }),
)

/** A failure with a public code. Callers see only the code, `retryAfter` and `issues`. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ErrorCode
  /** Time in seconds after which the caller may retry. */
  readonly retryAfter: number | undefined
  readonly issues: FieldIssue[]

  constructor(code: ErrorCode, detail: { retryAfter?: number; issues?: FieldIssue[]; cause?: unknown } = {}) {
    super(errorContracts.get(code)?.name, { cause: detail.cause })
    this.code = code
    this.retryAfter = detail.retryAfter
    this.issues = detail.issues ?? []
  }
}

/**
 * Returns `found` if it is in the caller's workspace. `workspaceId` is undefined for a caller that
 * may access all workspaces. Throws a `ServiceError` with the given code if `found` is undefined or
 * in another workspace.
 */
export function inWorkspace<T extends { workspaceId: string }>(
  found: T | undefined,
  workspaceId: string | undefined,
  code = ErrorCode.NOT_FOUND,
): T {
  if (!found || (workspaceId !== undefined && found.workspaceId !== workspaceId)) throw new ServiceError(code)
  return found
}

/**
 * Returns the `ServiceUnavailable` error for an unreachable or slow store, or for a full queue. The
 * caller must retry.
 */
export function unavailable(cause?: unknown): ServiceError {
  return new ServiceError(ErrorCode.SERVICE_UNAVAILABLE, { retryAfter: 1, cause })
}

function pascalCase(name: string): string {
  return name
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
}
