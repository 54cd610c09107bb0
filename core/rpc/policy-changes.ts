import { type Message, toJson } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import type { SuppressionEntry } from '#proto/workspace/v1/workspace_pb.js'
import type { Core } from '../core.ts'
import { deleteObject, workspaceOfObject } from '../privacy/deletions.ts'
import type { DeletionKind } from '../privacy/model.ts'
import { isObject } from '../rules.ts'
import { callerOf, operatorWrites } from '../transport/caller.ts'
import type { PolicySetting } from '../workspaces/model.ts'
import { recordPolicyChange } from '../workspaces/policy-changes.ts'
import { emptyAfter } from './proto-values.ts'

interface Subject {
  workspaceId: string
  /** Default: the workspace. */
  target?: string | ((operation: string) => string)
  settings?: PolicySetting[]
}

/** Like `operatorWrites`, but records the write as a policy change. */
export function auditedWrites(core: Core) {
  const once = operatorWrites(core)
  return <R>(
    context: HandlerContext,
    request: Message & { idempotencyKey?: string },
    { workspaceId, target = workspaceId, settings = settingsOf(context, request) }: Subject,
    run: (operation: string) => Promise<R>,
  ) =>
    once(context, request, (operation) => {
      const change = {
        workspaceId,
        actor: callerOf(context).subject,
        action: context.method.name,
        target: typeof target === 'string' ? target : target(operation),
        settings,
      }
      return recordPolicyChange(core, operation, change, () => run(operation))
    })
}

/** Deletes an object in the caller's workspace, once per idempotency key. The deletion is recorded once. */
export function operatorDeletion(core: Core) {
  const once = operatorWrites(core)
  return (
    context: HandlerContext,
    request: Message & { idempotencyKey?: string },
    kind: DeletionKind,
    target: string,
  ) =>
    emptyAfter(
      once(context, request, async () => {
        const { subject: actor, workspaceId: scope } = callerOf(context)
        const workspaceId = await workspaceOfObject(core, kind, target, scope)
        const change = { workspaceId, actor, action: context.method.name, target, settings: [] }
        await recordPolicyChange(core, `${kind} ${target}`, change, () => deleteObject(core, kind, target, scope))
      }),
    )
}

const maxSettings = 64
const maxValueLength = 256
/** Fields that are not recorded: they identify the call or the object, or have text about a person. */
const unrecorded = ['siteKey', 'sessionId', 'connectionId', 'workspaceId', 'idempotencyKey', 'reason']

function settingsOf({ method }: HandlerContext, request: Message) {
  const fields = Object.entries(toJson(method.input, request) as Record<string, unknown>)
  return fields
    .filter(([name]) => !unrecorded.includes(name))
    .flatMap(([name, value]) =>
      isObject(value)
        ? Object.entries(value).map(([inner, given]) => toSetting(`${name}.${inner}`, given))
        : [toSetting(name, value)],
    )
    .slice(0, maxSettings)
}

function toSetting(name: string, given: unknown) {
  const points = [...(typeof given === 'string' ? given : JSON.stringify(given))]
  const value = points.length > maxValueLength ? `${points.slice(0, maxValueLength - 1).join('')}…` : points.join('')
  return { name, value }
}

/** Counts the entries of each kind, because the entries themselves are personal data. */
export function entryCounts(entries: SuppressionEntry[], suppressionIds: string[] = []): PolicySetting[] {
  const byKind = Map.groupBy(entries, ({ of }) => of.case ?? 'none')
  return [
    ...[...byKind].map(([kind, { length }]) => ({ name: `entries.${kind}`, value: String(length) })),
    ...(suppressionIds.length > 0 ? [toSetting('suppressionIds', suppressionIds.join(', '))] : []),
  ]
}
