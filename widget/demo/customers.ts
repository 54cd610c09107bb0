/** A person with an account at the shop. */
export interface Customer {
  /** Customer id of the shop, used as the assertion's subject. */
  id: string
  name: string
  plan: string
  orders: number
}

/** Accounts of the demo shop. Signing in needs no password. */
export const customers: readonly Customer[] = [
  { id: 'customer_1042', name: 'Ada Berger', plan: 'Friend of the workshop', orders: 2 },
  { id: 'customer_1107', name: 'Jonas Lindqvist', plan: 'Customer', orders: 1 },
  { id: 'customer_1190', name: 'Mei Tanaka', plan: 'Customer', orders: 0 },
]

export const findCustomer = (id: string | null | undefined): Customer | undefined =>
  customers.find((customer) => customer.id === id)
