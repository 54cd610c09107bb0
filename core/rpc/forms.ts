import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Form, Forms as FormsMessage, FormsSchema } from '#proto/session/v1/session_pb.js'
import type { FormField, Forms } from '../workspaces/model.ts'

const defaultMaxLength = { text: 256, email: 254, tel: 32, textarea: 4000 }

export function toForms({ preChat, offline }: Forms): MessageInitShape<typeof FormsSchema> {
  return { preChat: preChat && { fields: preChat }, offline: offline && { fields: offline } }
}

export function fromForms({ preChat, offline }: FormsMessage): Forms {
  return { ...(preChat && { preChat: fromForm(preChat) }), ...(offline && { offline: fromForm(offline) }) }
}

function fromForm({ fields }: Form): FormField[] {
  return fields.map(({ name, label, type, required, maxLength }) => ({
    name,
    label,
    type: type as FormField['type'],
    required,
    maxLength: maxLength ?? defaultMaxLength[type as FormField['type']] ?? 256,
  }))
}
