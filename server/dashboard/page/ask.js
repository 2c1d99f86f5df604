// Questions to the manager, one at a time, and orders.

// ask returns what the manager answers. It fails with the manager's words, or if what has
// answered is no manager, with what is known of that.
export async function ask(path, options) {
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch {
    throw new Error(`the manager at ${location.host} does not answer`);
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw Object.assign(new Error(answer?.error ?? `${location.host} answers with status ${response.status}`), { status: response.status });
  if (answer === null) throw new Error(`${location.host} answers, but not as a manager does`);
  return answer;
}
