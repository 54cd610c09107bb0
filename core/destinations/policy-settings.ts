import type { FieldIssue } from '../../contract/errors.ts'
import { type DeliveryEventType, feedEventTypes, leadEventTypes } from '../../contract/event-kinds.ts'
import { type FieldMapping, sentNameOf } from '../../contract/lead-fields.ts'
import { leadFieldName } from '../leads/model.ts'
import { field, oneOf } from '../rules.ts'
import { type EventPolicy, isHook, leadSources, type Receives } from './policy-model.ts'

const maxMapped = 50
const maxInstallations = 100

type Issues = (FieldIssue | undefined)[]

/** Returns the violated rules of a policy: a hook sends events of the feed, a subscription those of leads. */
export function policyIssues(policy: EventPolicy | undefined, stored: Pick<Receives, 'resource'>): Issues {
  if (!policy) return []
  const { types, sources, installations } = policy
  if (isHook(stored))
    return [
      types.length === 0 ? { path: '/eventTypes', rule: 'minItems' } : undefined,
      ...listIssues<DeliveryEventType>('/eventTypes', types, feedEventTypes),
      ...(sources.length + installations.length > 0 ? [{ path: '/policy', rule: 'const' }] : []),
    ]
  return [
    ...listIssues<DeliveryEventType>('/policy/types', types, leadEventTypes),
    ...listIssues('/policy/sources', sources, leadSources),
    installations.length > maxInstallations ? { path: '/policy/installations', rule: 'maxItems' } : undefined,
  ]
}

const listIssues = <T>(path: string, values: T[], allowed: readonly T[]): Issues =>
  values.map((value, index) =>
    values.indexOf(value) === index
      ? field(`${path}/${index}`, value, oneOf(...allowed))
      : { path: `${path}/${index}`, rule: 'uniqueItems' },
  )

/** Returns the violated rules of the lead fields and of the names under which they are sent. */
export function mappingIssues({ mappedFields: names, sentNames = {} }: FieldMapping): Issues {
  if (names.length > maxMapped) return [{ path: '/mappedFields', rule: 'maxItems' }]
  const sent = names.map((name) => sentNameOf(name, { sentNames }))
  return [
    ...names.map((name, index) =>
      field(`/mappedFields/${index}`, name, () => {
        if (!leadFieldName.test(name)) return 'pattern'
        // Unless it is renamed, the field `reference` of a webhook would replace the lead's id.
        if (sent[index] === 'reference' && !Object.hasOwn(sentNames, name)) return 'pattern'
        return names.indexOf(name) === index ? undefined : 'uniqueItems'
      }),
    ),
    ...Object.entries(sentNames).map(([name, sentName]): FieldIssue | undefined => {
      if (!leadFieldName.test(name) || !names.includes(name)) return { path: '/sentNames', rule: 'propertyNames' }
      const path = `/sentNames/${name}`
      if (!leadFieldName.test(sentName) || sentName === 'reference') return { path, rule: 'pattern' }
      return sent.filter((each) => each === sentName).length === 1 ? undefined : { path, rule: 'uniqueItems' }
    }),
  ]
}
