import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { TextField, Toggle } from '../ui/field.tsx'
import { FailureNotice, Notice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { ExampleEvent } from './example-event.tsx'
import { formFields, PolicyFields, type PolicyInput, useInstallations } from './policy-fields.tsx'
import { commonFields, destinationProblem, fieldsOf, mappedFieldProblem } from './subscription-words.ts'

/** An empty text or a number from 1 to 1,000. */
const ratePattern = /^([1-9]\d{0,2}|1000)?$/
const notFoundPattern = /^(\d{1,2}|100)$/

const newUrlHint =
  'Receives a POST request for each lead or event. Must resolve to a public address; checked now and at each delivery. Stored encrypted; later, only scheme and host are shown.'
const changedUrlHint =
  'If empty, the present URL stays. Another scheme, host or port removes the custom headers; the signing secret stays.'

const ready = 'lead.ready-for-delivery'

export interface SubscriptionInput {
  /** Empty to keep the present URL, which is never shown. */
  destinationUrl: string
  /** Lead fields: `email`, or `email=mail` for a field that is sent under another name. */
  fields: string[]
  automatic: boolean
  policy: PolicyInput
  /** Maximum number of requests per second; 0 for no limit. */
  maxPerSecond: number
  /** Number of consecutive 404 answers that disable the subscription; 0 for never. */
  disableAfterNotFound: number
}

interface SubscriptionFormProps {
  initial: SubscriptionInput
  /** Masked URL of the present destination. Undefined for a new subscription. */
  present?: string
  /** True for an event hook, which has no lead fields. */
  isHook: boolean
  action: string
  submit: (input: SubscriptionInput) => Promise<unknown>
  children?: ComponentChildren
}

/** Form with the editable fields of a lead subscription or an event hook. */
export function SubscriptionForm({ initial, present, isHook, action, submit, children }: SubscriptionFormProps) {
  const isNew = present === undefined
  const { busy, failure, run } = useAction()
  const [destination, setDestination] = useState(initial.destinationUrl)
  const [fields, setFields] = useState(initial.fields)
  const [automatic, setAutomatic] = useState(initial.automatic)
  const [policy, setPolicy] = useState(initial.policy)
  const installations = useInstallations()
  const [rate, setRate] = useState(initial.maxPerSecond === 0 ? '' : String(initial.maxPerSecond))
  const [notFound, setNotFound] = useState(String(initial.disableAfterNotFound))
  const [problem, setProblem] = useState<string>()
  const [typesProblem, setTypesProblem] = useState<string>()
  const [rateProblem, setRateProblem] = useState<string>()
  const [notFoundProblem, setNotFoundProblem] = useState<string>()
  const form = useRef<HTMLFormElement>(null)
  const input: SubscriptionInput = {
    destinationUrl: destination.trim(),
    fields,
    automatic,
    policy,
    maxPerSecond: Number(rate),
    disableAfterNotFound: Number(notFound),
  }
  const isUnchanged = Object.entries(input).every(
    ([name, value]) => JSON.stringify(value) === JSON.stringify(initial[name as keyof SubscriptionInput]),
  )

  function save(event: Event) {
    event.preventDefault()
    const isKept = !isNew && input.destinationUrl === ''
    const urlProblem = isKept ? undefined : destinationProblem(input.destinationUrl)
    setProblem(urlProblem)
    const numberProblem = ratePattern.test(rate) ? undefined : 'Enter a whole number from 1 to 1,000, or nothing.'
    setRateProblem(numberProblem)
    const countProblem = notFoundPattern.test(notFound) ? undefined : 'Enter a whole number from 0 to 100.'
    setNotFoundProblem(countProblem)
    const isEmpty = isHook && policy.types.length === 0
    setTypesProblem(isEmpty ? 'Choose at least one event.' : undefined)
    const invalid = form.current!.querySelector<HTMLElement>('input:invalid')
    if (invalid) invalid.focus()
    else if (!isEmpty && [urlProblem, numberProblem, countProblem].every((each) => each === undefined))
      void run(() => submit(input))
  }

  const leadFields = (
    <>
      <EntryList
        label="Fields to send"
        hint="Names of lead fields. Other fields are not sent. If empty, only the lead’s reference is sent. “email=mail” sends the field email as mail."
        placeholder="email"
        entries={fields}
        problemOf={(entry) => mappedFieldProblem(entry, fields)}
        onChange={setFields}
        suggestions={[...new Set([...formFields(installations), ...commonFields])]}
      />
      <ExampleEvent {...fieldsOf(fields)} />
      <Toggle
        label="Send leads automatically"
        hint="If off, leads are sent only on request."
        checked={automatic}
        onChange={(isChosen) => {
          setAutomatic(isChosen)
          // Another client may have chosen a policy without this event.
          if (isChosen && !policy.types.includes(ready)) setPolicy({ ...policy, types: [ready, ...policy.types] })
        }}
      />
    </>
  )

  return (
    <Card title="Destination">
      <form class="stack" onSubmit={save} ref={form} noValidate>
        <TextField
          label="Destination URL"
          hint={isNew ? newUrlHint : changedUrlHint}
          error={problem}
          inputMode="url"
          required={isNew}
          maxLength={2048}
          placeholder={present ?? 'https://crm.example.com/hooks/leads'}
          value={destination}
          onChange={setDestination}
        />
        {!isHook && leadFields}
        <PolicyFields policy={policy} isHook={isHook} installations={installations} onChange={setPolicy} />
        <TextField
          label="Requests per second at most"
          hint="1 to 1,000. If empty, there is no limit."
          error={rateProblem}
          inputMode="numeric"
          value={rate}
          onChange={(value) => setRate(value.trim())}
        />
        <TextField
          label="Disable after this many 404 answers in a row"
          hint="1 to 100. With 0, a 404 only fails its delivery."
          error={notFoundProblem}
          inputMode="numeric"
          value={notFound}
          onChange={(value) => setNotFound(value.trim())}
        />
        {typesProblem && <Notice tone="warning">{typesProblem}</Notice>}
        <FailureNotice failure={failure} />
        <div class="line">
          <Button type="submit" kind="primary" disabled={busy || (!isNew && isUnchanged)}>
            {action}
          </Button>
          {children}
        </div>
      </form>
    </Card>
  )
}
