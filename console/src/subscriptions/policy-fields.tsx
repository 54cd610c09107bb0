import type { Installation } from '#proto/workspace/v1/workspace_pb.js'
import eventList from '../../../contract/event-kinds.json' with { type: 'json' }
import { leadEventTypes } from '../../../contract/lead-event-types.ts'
import { websiteName } from '../installations/installation-words.ts'
import { SelectField, Toggle } from '../ui/form.tsx'
import { Facts } from '../ui/page.tsx'
import { eventText } from './subscription-words.ts'

/** What a destination receives by itself. */
export interface PolicyInput {
  types: string[]
  sources: string[]
  installations: string[]
}

/** Has a choice of its own. */
export const ofLead = 'lead.ready-for-delivery'
const leadTypes = leadEventTypes.filter((type) => type !== ofLead)
const hookTypes = Object.keys(eventList).filter((type) => type !== ofLead)

const sources: [string, string][] = [
  ['', 'all sources'],
  ['pre-chat-form', 'the pre-chat form'],
  ['offline-form', 'the offline form'],
  ['pre-chat-form,offline-form', 'both forms'],
  ['services', 'other services'],
]

export const formFields = (installations: Installation[]): string[] => [
  ...new Set(
    installations.flatMap(({ forms }) =>
      [...(forms?.preChat?.fields ?? []), ...(forms?.offline?.fields ?? [])].map(({ name }) => name),
    ),
  ),
]

interface PolicyFieldsProps {
  policy: PolicyInput
  isHook: boolean
  installations: Installation[]
  onChange: (policy: PolicyInput) => void
}

/** Choices of events and, for a lead subscription, of the leads that they are about. */
export function PolicyFields({ policy, isHook, installations, onChange }: PolicyFieldsProps) {
  const types = isHook ? hookTypes : leadTypes
  const toggle = (type: string, isChosen: boolean) =>
    onChange({
      ...policy,
      types: isChosen ? [...policy.types, type] : policy.types.filter((each) => each !== type),
    })
  const siteOptions: [string, string][] = [
    ['', 'all websites'],
    ...installations.map((each): [string, string] => [each.publicSiteKey, websiteName(each)]),
  ]
  return (
    <>
      {types.map((type) => (
        <Toggle
          key={type}
          label={eventText(type)}
          checked={policy.types.includes(type)}
          onChange={(isChosen) => toggle(type, isChosen)}
        />
      ))}
      <details>
        <summary>More</summary>
        <Facts of={types.map((type) => [eventText(type), <code>{type}</code>])} />
      </details>
      {!isHook && (
        <>
          <SelectField
            label="Leads from"
            hint="Applies to everything that is sent by itself. A lead that you send on request is always sent."
            value={policy.sources.join()}
            options={withPresent(sources, policy.sources)}
            onChange={(value) => onChange({ ...policy, sources: value.split(',').filter(Boolean) })}
          />
          <SelectField
            label="Website"
            hint="Leads of other services have no website."
            value={policy.installations.join()}
            options={withPresent(siteOptions, policy.installations)}
            onChange={(value) => onChange({ ...policy, installations: value.split(',').filter(Boolean) })}
          />
        </>
      )}
    </>
  )
}

/** Adds the present values as an option, because other clients can choose several. */
function withPresent(options: [string, string][], present: string[]): [string, string][] {
  const value = present.join()
  return options.some(([each]) => each === value) ? options : [...options, [value, value]]
}
