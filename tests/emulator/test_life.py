import pytest

pytestmark = pytest.mark.looptime


async def states(api, number, seconds, step=5):
    """Look every few seconds and return the distinct (actual, intended, cur) seen, in order."""
    seen = []
    for _ in range(0, seconds, step):
        row = await api.row(number)
        seen.append((row["actual_status"], row["intended_status"], row["cur_state"]))
        await api.emulator.world.clock.sleep(step)
    return list(dict.fromkeys(seen))


async def test_an_instance_boots_through_the_states_of_the_real_service(make):
    """A rented instance shows null, created, loading with pull text, then running; ports come only at the end."""
    api = await make()
    number = await api.rent()
    seen, ports = [], []
    row = await api.row(number)
    while row["actual_status"] != "running":
        seen.append(row["actual_status"])
        ports.append(row["ports"])
        await api.emulator.world.clock.sleep(1)
        row = await api.row(number)
    assert list(dict.fromkeys(seen)) == [None, "created", "loading"]
    assert not any(ports)
    assert row["ports"]["22/tcp"][0]["HostPort"].isdigit()
    assert row["status_msg"].startswith("success, running")


async def test_a_row_has_what_the_order_asked_for(make):
    """Label, image, disk, environment and the machine's identity come back on the instance; secrets are marked."""
    api = await make()
    offer = (await api.offers())[3]
    number = await api.rent(offer, label="vf/é/1", disk=33, env={"A": "b", "-p 80:80": "1"}, onstart="run")
    row = await api.row(number)
    assert (row["label"], row["image_uuid"], row["disk_space"]) == ("vf/é/1", "example/prover:1", 33)
    assert row["extra_env"] == [["A", "b"], ["-p 80:80", "1"]]
    assert (row["machine_id"], row["gpu_name"]) == (offer["machine_id"], offer["gpu_name"])
    assert row["jupyter_token"].startswith("SECRET-")


async def test_a_missing_image_is_stopped_by_the_service_after_seven_minutes(make):
    """A bad image stays in loading with the registry's error, and the service itself turns the intent to stopped."""
    api = await make(troubles=[{"kind": "bad-image"}])
    number = await api.rent()
    seen = await states(api, number, 500)
    assert seen[-2:] == [("loading", "running", "running"), ("loading", "stopped", "stopped")]
    assert "manifest" in (await api.row(number))["status_msg"]


@pytest.mark.parametrize(
    ("kind", "actual", "text"),
    [
        ("gpu-fault", "created", "GPU error"),
        ("oci-fault", "created", "OCI runtime"),
        ("stuck-loading", "loading", "Pull"),
    ],
)
async def test_a_broken_boot_never_runs(make, kind, actual, text):
    """A GPU fault, an OCI fault and an endless pull each show their status and their text, and never run."""
    api = await make(troubles=[{"kind": kind}])
    number = await api.rent()
    await api.emulator.world.clock.sleep(3600)
    row = await api.row(number)
    assert row["actual_status"] == actual
    assert text in row["status_msg"]
    assert api.emulator.world.contracts[number].boots == 0


async def test_stopping_frees_the_gpus_and_starting_takes_them_again(make):
    """A stopped instance exits, its GPUs return to the market under a new offer id, and a start boots it faster."""
    api = await make()
    offer = (await api.offers())[0]
    number = await api.rent(offer)
    await api.running(number)
    assert (await api("PUT", f"v0/instances/{number}/", {"state": "stopped"}))[1]["success"]
    assert (await states(api, number, 10, step=1))[-1] == ("exited", "stopped", "stopped")
    relisted = [o for o in await api.offers() if o["machine_id"] == offer["machine_id"]]
    assert relisted
    assert offer["id"] not in [o["id"] for o in relisted]
    assert (await api("PUT", f"v0/instances/{number}/", {"state": "running"}))[1]["success"]
    await api.running(number)
    assert api.emulator.world.contracts[number].boots == 2


async def test_a_start_whose_gpu_is_taken_is_queued_and_happens_later(make):
    """Starting while others hold the GPU answers "state change queued", and the instance starts when it is free."""
    api = await make(troubles=[{"kind": "gpu-taken", "seconds": 900}])
    number = await api.rent()
    await api.running(number)
    await api("PUT", f"v0/instances/{number}/", {"state": "stopped"})
    status, body = await api("PUT", f"v0/instances/{number}/", {"state": "running"})
    assert (status, body["success"]) == (200, False)
    assert "state change queued" in body["msg"]
    await api.emulator.world.clock.sleep(5)
    row = await api.row(number)
    assert (row["actual_status"], row["intended_status"], row["cur_state"]) == ("exited", "running", "stopped")
    await api.running(number)
    assert api.emulator.world.time >= api.emulator.world.started + 900


async def test_a_lost_host_goes_unknown_then_offline_and_may_return(make):
    """A host that is lost shows unknown, a minute later offline, is not for rent, and comes back when it is to."""
    api = await make(troubles=[{"kind": "host-lost", "after": 60, "seconds": 600}])
    number = await api.rent()
    row = await api.running(number)
    seen = [actual for actual, _, _ in await states(api, number, 300)]
    assert seen == ["running", "unknown", "offline"]
    assert row["machine_id"] not in [o["machine_id"] for o in await api.offers()]
    await api.running(number)


async def test_an_interruptible_is_outbid_and_resumes_by_itself(make):
    """An outbid instance shows stopped in intent and state, and resumes without being asked when it has priority."""
    api = await make(troubles=[{"kind": "outbid", "after": 60, "seconds": 600}])
    offer = (await api.offers(type="bid"))[0]
    number = await api.rent(offer, price=offer["min_bid"] * 3)
    assert (await api.running(number))["is_bid"]
    seen = await states(api, number, 300)
    assert seen == [
        ("running", "running", "running"),
        ("running", "stopped", "stopped"),
        ("exited", "stopped", "stopped"),
    ]
    await api.running(number)


async def test_a_low_bid_fails_and_still_leaves_an_instance(make):
    """A bid under the floor is refused with the id of a stopped instance that bills its disk."""
    api = await make()
    offer = (await api.offers(type="bid"))[0]
    order = {"client_id": "me", "image": "i", "disk": 10, "price": offer["min_bid"] / 2}
    status, body = await api("PUT", f"v0/asks/{offer['id']}/", order)
    assert status == 400
    assert (await api.row(body["new_contract"]))["intended_status"] == "stopped"


async def test_a_contract_ends_on_its_date(make):
    """At its end date an instance is stopped and cannot be started again."""
    api = await make(credit=1e6)
    number = await api.rent()
    row = await api.running(number)
    await api.emulator.world.clock.sleep(row["end_date"] - api.emulator.world.time + 60)
    assert (await api.row(number))["actual_status"] == "exited"
    assert (await api("PUT", f"v0/instances/{number}/", {"state": "running"}))[0] == 400


async def test_a_destroyed_instance_is_gone_by_id_and_may_linger_in_the_list(make):
    """After a destroy the id reads null at once, while the list shows the row as long as the scenario says."""
    api = await make(troubles=[{"kind": "linger", "seconds": 45}])
    number = await api.rent()
    assert (await api("DELETE", f"v0/instances/{number}/"))[1]["success"]
    assert await api.row(number) is None
    assert [row["id"] for row in (await api("GET", "v1/instances/"))[1]["instances"]] == [number]
    await api.emulator.world.clock.sleep(46)
    assert (await api("GET", "v1/instances/"))[1]["instances"] == []
    assert (await api("DELETE", f"v0/instances/{number}/"))[0] == 404


async def test_a_resurrected_instance_bills_again_until_destroyed_once_more(make):
    """An instance may come back to life after a destroy; a second destroy ends it for good."""
    api = await make(troubles=[{"kind": "resurrect", "seconds": 20}])
    number = await api.rent()
    await api("DELETE", f"v0/instances/{number}/")
    await api.emulator.world.clock.sleep(21)
    assert (await api.row(number))["actual_status"] == "running"
    assert api.emulator.alive == (number,)
    await api("DELETE", f"v0/instances/{number}/")
    await api.emulator.world.clock.sleep(3600)
    assert api.emulator.alive == ()


async def test_a_new_instance_may_be_unreadable_for_a_while(make):
    """For the seconds the scenario says, a new instance is neither listed nor read by id."""
    api = await make(unreadableSeconds=30)
    number = await api.rent()
    assert await api.row(number) is None
    assert (await api("GET", "v1/instances/"))[1]["total_instances"] == 0
    await api.emulator.world.clock.sleep(30)
    assert (await api.row(number))["id"] == number


async def test_a_recycle_makes_the_container_anew(make):
    """A reboot keeps the container's files, a recycle loses them."""
    api = await make()
    number = await api.rent()
    await api.running(number)
    run = api.emulator.run
    printed: list[str] = []
    assert await run(number, "echo kept > /root/f", printed.append, printed.append) == 0
    for action, code in (("reboot", 0), ("recycle", 1)):
        await api("PUT", f"v0/instances/{action}/{number}/", {})
        await api.running(number)
        assert await run(number, "test -f /root/f", printed.append, printed.append) == code
