import { OperatorScopeSchema } from '#proto/access/v1/access_pb.js'

/**
 * Every scope that a workspace session may hold, from the proto's `OperatorScope`, such as
 * `leads:deliver`.
 */
export const operatorScopes: ReadonlySet<string> = new Set(
  OperatorScopeSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName }) => localName.toLowerCase().replace('_', ':')),
)
