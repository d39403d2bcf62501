"""Functions whose kernels run on a device: they take arrays in its memory, and numpy arrays, which are copied.

    y = torch.empty(512, 256, device=x.device)
    layer(x, w, bias, y)                            kernels are launched; the call does not wait for them
    layer(x, w, bias, y, stream=torch.cuda.current_stream())
    layer(x, w, bias, y, stream=stream, wait_for=loaded, record=done)          events of PyTorch, CuPy or the driver

modules       code, compiled for a device and loaded there
functions     functions, and calls that are recorded
frames        memory for the arguments of launches
arrays        arrays in the device's memory
host_copies   copies of numpy arrays for the time of a call
streams       streams and events
"""
