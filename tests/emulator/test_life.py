import pytest

pytestmark = pytest.mark.looptime


async def test_an_instance_boots_through_the_states_of_the_real_service(make):
    """A rented instance shows null, then created, then loading with pull text, then running; ports only at the end."""
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
