import type { Document } from 'mongodb'

/** Errors of a MongoDB server that a replica set returns. */
const codes = {
  HostUnreachable: 6,
  WriteConcernFailed: 64,
  InvalidOptions: 72,
  FailedToSatisfyReadPreference: 133,
  ReadConcernMajorityNotAvailableYet: 134,
  PrimarySteppedDown: 189,
  NetworkInterfaceExceededTimeLimit: 202,
  TransactionTooOld: 225,
  NotWritablePrimary: 10107,
  InterruptedDueToReplStateChange: 11602,
  NotPrimaryNoSecondaryOk: 13435,
} as const

export type ErrorName = keyof typeof codes

/** Errors after which the driver repeats a retryable write. The server labels them. */
const retryable: ErrorName[] = [
  'HostUnreachable',
  'PrimarySteppedDown',
  'NotWritablePrimary',
  'InterruptedDueToReplStateChange',
  'NotPrimaryNoSecondaryOk',
]

export const codeOf = (name: ErrorName) => ({ code: codes[name], codeName: name })

/** Returns the label with which a server marks the failure of a retryable write. */
export const labelOf = (name: ErrorName, command: Document): Document =>
  command.txnNumber !== undefined && retryable.includes(name) ? { errorLabels: ['RetryableWriteError'] } : {}

export const failure = (name: ErrorName, command: Document, errmsg: string = name): Document => ({
  ok: 0,
  errmsg,
  ...codeOf(name),
  ...labelOf(name, command),
})
