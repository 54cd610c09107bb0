import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { parseDestinationUrl } from '../../destination/destination-url.ts'
import { type FieldIssue, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { field, integer, validate } from '../rules.ts'
import type { DeliveryStore } from '../store/deliveries.ts'
import {
  auditMax,
  type LeadSubscription,
  type LeadSubscriptionStore,
  type SubscriptionAuditEntry,
  type SubscriptionStatus,
} from '../store/lead-subscriptions.ts'
import type { WorkspaceStore } from '../store/workspaces.ts'
import type { DeliveryHolds } from './delivery-holds.ts'
import { leadFieldName } from './leads.ts'
import type { LiveSubscriptions } from './live-subscriptions.ts'
import { newWebhookSecret, rotatedSecrets } from './webhook-secrets.ts'

/** Who asks: its name for the record, and the one workspace that it may act for, where there is one. */
export interface Requester {
  subject: string
  workspaceId?: string
}

export interface SubscriptionSettings {
  destinationUrl?: string
  mappedFields?: string[]
  automatic?: boolean
  status?: SubscriptionStatus
}

export interface SubscriptionView {
  subscription: LeadSubscription
  heldDeliveries: number
}

/** Whether every address that a destination resolves to is allowed. Never says why not. */
export type JudgeDestination = (url: URL) => Promise<boolean>

export interface LeadSubscriptions {
  /** The secret is shown this once. Errors: `NotFound`, `ValidationFailed`. */
  create(
    settings: { workspaceId: string; destinationUrl: string; mappedFields: string[]; automatic: boolean },
    by: Requester,
  ): Promise<SubscriptionView & { secret: string }>
  /** Errors: `SubscriptionNotFound`, `ValidationFailed`. */
  update(subscriptionId: string, settings: SubscriptionSettings, by: Requester): Promise<SubscriptionView>
  /** `overlap`: seconds that the secret before goes on signing. Errors: `SubscriptionNotFound`, `ValidationFailed`. */
  rotateSecret(
    subscriptionId: string,
    overlap: number | undefined,
    by: Requester,
  ): Promise<SubscriptionView & { secret: string }>
  /** With who did what, the newest first. Errors: `SubscriptionNotFound`. */
  get(subscriptionId: string, by: Requester): Promise<SubscriptionView & { audit: SubscriptionAuditEntry[] }>
  /** The newest first. */
  list(workspaceId: string): Promise<SubscriptionView[]>
}

const day = 86_400
const maxMapped = 50
const maxListed = 1000

export function createLeadSubscriptions(dependencies: {
  store: LeadSubscriptionStore
  deliveries: Pick<DeliveryStore, 'requests'>
  holds: Pick<DeliveryHolds, 'hold' | 'release' | 'heldCounts'>
  liveSubscriptions: Pick<LiveSubscriptions, 'changed'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace'>
  secretBox: SecretBox
  judgeDestination: JudgeDestination
  now: () => number
}): LeadSubscriptions {
  const { store, deliveries, holds, liveSubscriptions, workspaceStore, secretBox, judgeDestination, now } = dependencies

  async function find(subscriptionId: string, { workspaceId }: Requester): Promise<LeadSubscription> {
    const [found] = await store.find([subscriptionId])
    if (!found || (workspaceId !== undefined && found.workspaceId !== workspaceId)) {
      throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
    }
    return found
  }

  async function view(subscriptionId: string, by: Requester): Promise<SubscriptionView> {
    const [subscription, counts] = await Promise.all([find(subscriptionId, by), holds.heldCounts([subscriptionId])])
    return { subscription, heldDeliveries: counts.get(subscriptionId) ?? 0 }
  }

  async function validateSettings({ destinationUrl, mappedFields }: SubscriptionSettings) {
    validate(field('/destinationUrl', destinationUrl, destinationShape), ...mappingIssues(mappedFields ?? []))
    const url = destinationUrl === undefined ? undefined : parseDestinationUrl(destinationUrl)
    if (url && !(await judgeDestination(url))) {
      throw new ServiceError(ErrorCode.VALIDATION_FAILED, {
        issues: [{ path: '/destinationUrl', rule: 'publicAddress' }],
      })
    }
  }

  return {
    async create({ workspaceId, destinationUrl, mappedFields, automatic }, by) {
      if (by.workspaceId !== undefined && by.workspaceId !== workspaceId) throw new ServiceError(ErrorCode.NOT_FOUND)
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      await validateSettings({ destinationUrl, mappedFields })
      const at = new Date(now())
      const { secret, kept } = newWebhookSecret(secretBox, at)
      const subscription: LeadSubscription = {
        subscriptionId: newId('sub'),
        workspaceId,
        destinationUrl,
        mappedFields,
        automatic,
        status: 'enabled',
        secrets: [kept],
        notFound: [],
        judgedSince: at,
        audit: [{ at, actor: by.subject, action: 'created' }],
        createdAt: at,
        updatedAt: at,
      }
      await store.insert(subscription)
      return { subscription, heldDeliveries: 0, secret }
    },

    async update(subscriptionId, settings, by) {
      const { status: before } = await find(subscriptionId, by)
      await validateSettings(settings)
      const { status, ...changes } = settings
      const entry = { at: new Date(now()), actor: by.subject }
      if (Object.keys(changes).length > 0) {
        const judged = changes.destinationUrl === undefined ? {} : { judgedSince: entry.at }
        await store.update(subscriptionId, { ...changes, ...judged }, { ...entry, action: 'updated' })
        await liveSubscriptions.changed(subscriptionId)
      }
      // Both come to an end by themselves where this process dies in between: `DeliveryHolds.reconcile`.
      if (status === 'enabled') {
        if (before === 'disabled') await store.enable(subscriptionId, { ...entry, action: 'enabled' })
        await liveSubscriptions.changed(subscriptionId)
        await holds.release(subscriptionId)
      }
      if (status === 'disabled') {
        const reason = 'operator'
        await store.disable(subscriptionId, reason, { ...entry, action: 'disabled', disabledReason: reason })
        await liveSubscriptions.changed(subscriptionId)
        await holds.hold(subscriptionId)
      }
      return view(subscriptionId, by)
    },

    async rotateSecret(subscriptionId, overlap = day, by) {
      await find(subscriptionId, by)
      validate(field('/overlapSeconds', overlap, integer(0, 7 * day)))
      for (;;) {
        const subscription = await find(subscriptionId, by)
        const at = new Date(now())
        const { secret, kept } = newWebhookSecret(secretBox, at)
        const secrets = rotatedSecrets(subscription.secrets, kept, new Date(at.getTime() + overlap * 1000))
        const entry = { at, actor: by.subject, action: 'secret_rotated' as const }
        if (await store.replaceSecrets(subscription, secrets, entry)) {
          await liveSubscriptions.changed(subscriptionId)
          return { ...(await view(subscriptionId, by)), secret }
        }
      }
    },

    async get(subscriptionId, by) {
      const [found, requests] = await Promise.all([
        view(subscriptionId, by),
        deliveries.requests(subscriptionId, auditMax),
      ])
      const audit = [...found.subscription.audit, ...requests].sort((a, b) => b.at.getTime() - a.at.getTime())
      return { ...found, audit: audit.slice(0, auditMax) }
    },

    async list(workspaceId) {
      const found = await store.list(workspaceId, maxListed)
      const counts = await holds.heldCounts(found.map(({ subscriptionId }) => subscriptionId))
      return found.map((subscription) => ({
        subscription,
        heldDeliveries: counts.get(subscription.subscriptionId) ?? 0,
      }))
    },
  }
}

function destinationShape(value: string): string | undefined {
  if (value.length > 2048) return 'maxLength'
  return parseDestinationUrl(value) ? undefined : 'format'
}

function mappingIssues(names: string[]): (FieldIssue | undefined)[] {
  if (names.length > maxMapped) return [{ path: '/mappedFields', rule: 'maxItems' }]
  return names.map((name, index) =>
    field(`/mappedFields/${index}`, name, () => {
      // The lead's own reference bears that name.
      if (!leadFieldName.test(name) || name === 'reference') return 'pattern'
      return names.indexOf(name) === index ? undefined : 'uniqueItems'
    }),
  )
}
