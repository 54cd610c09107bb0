const contactFields = [
  { name: 'name', label: 'Name', type: 'text', required: false },
  { name: 'email', label: 'E-mail', type: 'email', required: true },
]

/** The usual fields of the forms. The widget shows these labels in the language of the visitor. */
export const usualFields = {
  preChat: contactFields,
  offline: [...contactFields, { name: 'message', label: 'Message', type: 'textarea', required: true }],
}
