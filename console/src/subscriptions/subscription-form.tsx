import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { SubscriptionPurpose } from '#proto/lead/v1/subscription_pb.js'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { SelectField, TextField, Toggle } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { commonFields, destinationProblem, mappedFieldProblem } from './subscription-words.ts'

/** An empty text or a number from 1 to 1,000. */
const ratePattern = /^([1-9]\d{0,2}|1000)?$/

export interface SubscriptionInput {
  destinationUrl: string
  mappedFields: string[]
  automatic: boolean
  purpose: SubscriptionPurpose
  /** Maximum number of requests per second; 0 for no limit. */
  maxPerSecond: number
}

interface SubscriptionFormProps {
  initial: SubscriptionInput
  /** True if the purpose can be chosen. It cannot be changed later. */
  isNew?: boolean
  action: string
  submit: (input: SubscriptionInput) => Promise<unknown>
  children?: ComponentChildren
}

/** Form with the editable fields of a lead subscription. */
export function SubscriptionForm({ initial, isNew = false, action, submit, children }: SubscriptionFormProps) {
  const { busy, failure, run } = useAction()
  const [destination, setDestination] = useState(initial.destinationUrl)
  const [mappedFields, setMappedFields] = useState(initial.mappedFields)
  const [automatic, setAutomatic] = useState(initial.automatic)
  const [purpose, setPurpose] = useState(initial.purpose)
  const [rate, setRate] = useState(initial.maxPerSecond === 0 ? '' : String(initial.maxPerSecond))
  const [problem, setProblem] = useState<string>()
  const [rateProblem, setRateProblem] = useState<string>()
  const form = useRef<HTMLFormElement>(null)
  const isOperational = purpose === SubscriptionPurpose.OPERATIONAL_EVENTS
  const input: SubscriptionInput = {
    destinationUrl: destination.trim(),
    mappedFields: isOperational ? [] : mappedFields,
    automatic: !isOperational && automatic,
    purpose,
    maxPerSecond: Number(rate),
  }
  const isUnchanged = Object.entries(input).every(
    ([name, value]) => JSON.stringify(value) === JSON.stringify(initial[name as keyof SubscriptionInput]),
  )

  function save(event: Event) {
    event.preventDefault()
    const urlProblem = destinationProblem(input.destinationUrl)
    setProblem(urlProblem)
    const numberProblem = ratePattern.test(rate) ? undefined : 'Enter a whole number from 1 to 1,000, or nothing.'
    setRateProblem(numberProblem)
    const invalid = form.current!.querySelector<HTMLElement>('input:invalid')
    if (invalid) invalid.focus()
    else if (urlProblem === undefined && numberProblem === undefined) void run(() => submit(input))
  }

  const leadFields = (
    <>
      <EntryList
        label="Fields to send"
        hint="Names of lead fields. Other fields are not sent. If empty, only the lead’s reference is sent."
        placeholder="email"
        entries={mappedFields}
        problemOf={mappedFieldProblem}
        onChange={setMappedFields}
        suggestions={commonFields}
      />
      <Toggle
        label="Send leads automatically"
        hint="If off, leads are sent only on request."
        checked={automatic}
        onChange={setAutomatic}
      />
    </>
  )

  return (
    <Card title="Destination">
      <form class="stack" onSubmit={save} ref={form} noValidate>
        <TextField
          label="Destination URL"
          hint="Receives a POST request for each lead or event. Must resolve to a public address; checked now and at each delivery."
          error={problem}
          inputMode="url"
          required
          maxLength={2048}
          placeholder="https://crm.example.com/hooks/leads"
          value={destination}
          onChange={setDestination}
        />
        {isNew && (
          <SelectField
            label="Receives"
            hint="Operational events report disabled subscriptions and deliveries that failed for good. This cannot be changed later."
            value={String(purpose)}
            options={[
              [String(SubscriptionPurpose.LEADS), 'Leads'],
              [String(SubscriptionPurpose.OPERATIONAL_EVENTS), 'Operational events'],
            ]}
            onChange={(value) => setPurpose(Number(value))}
          />
        )}
        {!isOperational && leadFields}
        <TextField
          label="Requests per second at most"
          hint="1 to 1,000. If empty, there is no limit."
          error={rateProblem}
          inputMode="numeric"
          value={rate}
          onChange={(value) => setRate(value.trim())}
        />
        <FailureNotice failure={failure} />
        <div class="line">
          <Button type="submit" kind="primary" disabled={busy || (initial.destinationUrl !== '' && isUnchanged)}>
            {action}
          </Button>
          {children}
        </div>
      </form>
    </Card>
  )
}
